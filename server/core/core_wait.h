// Time that a thread spends ready to run, while other threads have its core.
#pragma once

#include "absl/time/time.h"

namespace saccade::server {

// How long the calling thread has waited so since it began. Zero where the kernel does not say. Takes some
// microseconds.
absl::Duration TimeWithoutCore();

}  // namespace saccade::server
