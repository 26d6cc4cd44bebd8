// Rates that no batching policy can exceed, or that a good one approaches, for a latency model L(b) = alpha +
// beta * b.
#pragma once

#include <cstdint>
#include <vector>

#include "server/simulation/linear_latency.h"

namespace saccade::server::simulation {

// G*: the largest rate, in requests per second, at which `instances` that serve `buckets` equally loaded
// buckets in turn answer every request within `deadline`: (N / beta) * (1 - alpha * (1 + K / N) / D). 0 if no
// rate satisfies this.
double ServeAllRate(const LinearLatency& latency, int instances, int buckets, Nanos deadline,
                    int64_t max_batch_size);

// G^: the requests per second answered in time from even arrivals at `rate`, when requests may be dropped,
// for one bucket: min(rate, N * b / L(b)), where b is the largest batch whose first member is still in time
// after waiting for the other members.
double OverloadGoodput(const LinearLatency& latency, int instances, double rate, Nanos deadline,
                       int64_t max_batch_size);

// The fewest requests that a single instance which knows all arrivals beforehand has to drop, at most `max`;
// `max` + 1 if more are needed. `arrivals` ascend, and each request is due `deadline` after its arrival. One
// bucket.
int64_t FewestMissed(const LinearLatency& latency, const std::vector<Nanos>& arrivals, Nanos deadline,
                     int64_t max_batch_size, int64_t max);

}  // namespace saccade::server::simulation
