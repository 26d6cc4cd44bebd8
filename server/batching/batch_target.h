// How large batches have to be for a model's instances to carry what comes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/batching/bucket.h"

namespace saccade::server {

// How long an arrival counts in a bucket's rate.
double RateMemory(const Bucket& bucket);

// Sets the target of a level of priority in every bucket; the level and those before it are so much, 0 to 1,
// of what comes. `instances` is how many compute at the same time, perhaps a fraction. Returns how many of
// the buckets are active: those that bring more than a fiftieth of the load.
int64_t SetTargets(const std::vector<Bucket*>& buckets, size_t level, double share, double instances,
                   int64_t max_batch_size, int64_t now);

}  // namespace saccade::server
