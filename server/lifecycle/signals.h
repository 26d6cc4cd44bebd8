// SIGTERM and SIGINT, handled by the main thread only.
#pragma once

#include "absl/time/time.h"

namespace saccade::server {

// Blocks SIGTERM and SIGINT in this thread and in all threads that it starts, and ignores SIGPIPE and
// SIGXFSZ. Call before any thread exists.
void BlockSignals();

// Blocks until SIGTERM or SIGINT arrives (returns true) or `timeout` has passed (returns false).
bool AwaitSignal(absl::Duration timeout);

}  // namespace saccade::server
