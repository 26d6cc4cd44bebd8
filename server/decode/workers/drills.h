// What a worker does wrong on purpose, for the tests of its bounds.
#pragma once

#include "absl/status/status.h"
#include "server/decode/workers/messages.h"

namespace saccade::server {

// Drills that crash or loop do not return. The others return OK if they were prevented, and else say what was
// possible.
absl::Status Perform(Drill drill);

}  // namespace saccade::server
