// How often the threads that write and send captured calls warn.
#pragma once

#include "absl/time/time.h"

namespace saccade::server {

// Between two warnings of one thread.
inline constexpr absl::Duration kMinWarningInterval = absl::Seconds(60);

}  // namespace saccade::server
