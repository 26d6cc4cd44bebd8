// What no policy can exceed, or what a good one comes close to, for a latency model L(b) = alpha + beta * b.
#pragma once

#include <cstdint>
#include <vector>

#include "server/simulation/latency_model.h"

namespace saccade::server::simulation {

// G*: the largest rate, a second, at which `instances` that serve `buckets` equally loaded buckets in turn
// answer everything within `deadline`: (N / beta) * (1 - alpha * (1 + K / N) / D). 0 if there is none.
double ServeAllRate(const LatencyModel& latency, int instances, int buckets, Instant deadline,
                    int64_t max_batch_size);

// G^: what they answer in time of even arrivals at `rate`, a second, when they need not answer all, one
// bucket: min(rate, N * b / L(b)) with the largest b whose first member, which waits for the others, is in
// time.
double OverloadGoodput(const LatencyModel& latency, int instances, double rate, Instant deadline,
                       int64_t max_batch_size);

// How few of the requests that arrive at these times, ascending, each due `deadline` later, a single instance
// that knows all of them beforehand has to give up, up to `most`; `most` + 1 if they are more. One bucket.
int64_t FewestMissed(const LatencyModel& latency, const std::vector<Instant>& arrivals, Instant deadline,
                     int64_t max_batch_size, int64_t most);

}  // namespace saccade::server::simulation
