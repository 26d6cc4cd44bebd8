// Time that a thread spends ready to run, while other threads have its core.
#pragma once

#include "absl/time/time.h"

namespace saccade::server {

// Total time that the calling thread was ready to run but not running, since it started. Zero where the
// kernel does not say. Takes some microseconds.
absl::Duration TimeWithoutCore();

}  // namespace saccade::server
