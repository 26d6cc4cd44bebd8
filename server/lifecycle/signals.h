// SIGTERM and SIGINT, taken by the main thread alone.
#pragma once

#include "absl/time/time.h"

namespace saccade::server {

// Blocks SIGTERM and SIGINT in this thread and all it starts, and ignores SIGPIPE. Call before any thread
// exists.
void BlockSignals();

// Blocks until one of the two arrives (true) or `timeout` is over (false).
bool AwaitSignal(absl::Duration timeout);

}  // namespace saccade::server
