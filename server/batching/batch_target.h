// Computes the batch sizes that a model's instances need to carry the current load.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/batching/bucket.h"
#include "server/batching/largest_fitting.h"
#include "server/batching/nanos.h"

namespace saccade::server {

// Time constant of the bucket's arrival rate.
Nanos RateMemory(const Bucket& bucket);

// Returns the largest batch, from 1 to `max_batch_size`, that can gather and be computed within `patience`,
// if `rate` items arrive per nanosecond. `upper` returns the longest time of a pass by its size. REQUIRES:
// rate > 0, and `upper` never decreases with the size.
template <typename Upper>
int64_t GatheredInTime(const Upper& upper, double rate, Nanos patience, int64_t max_batch_size) {
  return LargestFitting(/*least=*/1, max_batch_size, [&](int64_t size) {
    return upper(size) + Nanos(static_cast<double>(size) / rate) <= patience;
  });
}

// Sets the target of a priority level in every bucket. `share`, 0 to 1, is the share of the load that this
// level and the levels before it have. `instances` is the number of passes that run concurrently, possibly a
// fraction. Returns the number of active buckets: those with more than a fiftieth of the load.
int64_t SetTargets(const std::vector<Bucket*>& buckets, size_t level, double share, double instances,
                   int64_t max_batch_size, NanoTime now);

}  // namespace saccade::server
