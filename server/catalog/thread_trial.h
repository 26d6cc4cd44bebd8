// Determines how many threads a model's passes should have.
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

// Loads the network for `threads`, on which the layout of the weights depends. The calling thread uses as
// many.
using LoadForThreads = std::function<absl::StatusOr<PassMaker>(int threads)>;

// Tries `max` and its successive halves, and returns the number of threads that suits this thread's passes
// best: the product of how long a batch of one takes and how much processor time a full batch takes is the
// least. So twice the threads are taken where they make passes at least 1.41 times as fast. Every parallel
// loop wakes the other threads and waits for the last one, which costs more than it saves if a pass is short;
// and cores that a pass leaves free serve other passes, decode and talk to clients. Returns `max` if a pass
// is long, fails, or cannot be made. The network is loaded for the returned number on return. Errors are
// those of `load`.
absl::StatusOr<int> LoadForBestThreads(const LoadForThreads& load, int max, int64_t max_batch_size,
                                       Clock* clock);

}  // namespace saccade::server
