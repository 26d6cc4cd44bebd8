// Determines how many threads a model's passes should have.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/core/clock.h"

namespace saccade::server {

// Makes a function that computes a pass over `size` items and may be called repeatedly; null if such a batch
// cannot be made.
using PassMaker = std::function<std::function<absl::Status()>(int64_t size)>;

// Loads the network for `threads`, on which the layout of the weights depends. The calling thread uses as
// many.
using LoadForThreads = std::function<absl::StatusOr<PassMaker>(int threads)>;

// What passes with so many threads cost; nullopt if they cannot be measured, or take too long for it.
using CostOfThreads = std::function<std::optional<double>(const PassMaker& make, int threads)>;

// Loads the network for `max` threads and measures, then for its successive halves, until a number costs much
// more than the best one, or has no cost. Returns the best number that was measured, or `max` if none was.
// The network is loaded for it on return. Errors are those of `load`.
absl::StatusOr<int> LoadForLeastCost(const LoadForThreads& load, const CostOfThreads& cost_of, int max);

// Measures passes on this thread with `max` threads and its successive halves. Returns the number with the
// least cost: the time of a batch of one, times the processor time of a full batch. Twice as many threads
// thus have to make passes at least 1.41 times as fast. Fewer threads may be better for two reasons: every
// parallel loop wakes the other threads and waits for the last one, which costs more than it saves in a short
// pass; and free cores compute other passes, decode and serve connections. The trial ends once a number costs
// much more than the best, or at the first number at which a pass is long, fails, or cannot be made; in that
// case the result is the best number before it, or `max` if it is the first. The network is loaded for the
// returned number on return. Errors are those of `load`.
absl::StatusOr<int> LoadForBestThreads(const LoadForThreads& load, int max, int64_t max_batch_size,
                                       Clock* clock);

}  // namespace saccade::server
