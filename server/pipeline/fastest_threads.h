// How many threads a pass is computed with.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/core/clock.h"

namespace saccade::server {

// A pass over so many items, to be computed again and again; null if none can be made up.
using PassMaker = std::function<std::function<absl::Status()>(int64_t size)>;

// Loads the network anew, for the number of threads that this thread now computes with: in what layout a
// weight lies is chosen by it.
using LoadForThreads = std::function<absl::StatusOr<PassMaker>()>;

// Of `most` and its halves, the number with which batches of one and full ones take the least time, computed
// on this thread. Each loop that is shared wakes the other threads and waits for the last of them: where a
// pass is short that costs more than it brings. `most`, if a pass is long, fails, or cannot be made up. What
// is loaded when this returns is loaded for what it returns. The error is of loading.
absl::StatusOr<int> LoadForFastest(const LoadForThreads& load, int most, int64_t max_batch_size,
                                   Clock* clock);

}  // namespace saccade::server
