// Determines the number of threads with which a model's passes are fastest.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/core/clock.h"

namespace saccade::server {

// Makes a function that computes a pass over `size` items and may be called repeatedly; null if such a batch
// cannot be made.
using PassMaker = std::function<std::function<absl::Status()>(int64_t size)>;

// Loads the network for the number of threads that the calling thread currently uses, on which the layout of
// the weights depends.
using LoadForThreads = std::function<absl::StatusOr<PassMaker>()>;

// Tries `max` and its successive halves, and returns the number of threads with which batches of one and
// full batches take the least time on this thread. Every parallel loop wakes the other threads and waits for
// the last one, which costs more than it saves if a pass is short. Returns `max` if a pass is long, fails,
// or cannot be made. The network is loaded for the returned number on return. Errors are those of `load`.
absl::StatusOr<int> LoadForFastest(const LoadForThreads& load, int max, int64_t max_batch_size, Clock* clock);

}  // namespace saccade::server
