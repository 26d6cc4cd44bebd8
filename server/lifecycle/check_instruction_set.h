// The instruction set of the networks, which the environment variable SACCADE_CPU_ISA may limit.
#pragma once

#include "absl/status/status.h"

namespace saccade::server {

// INVALID_ARGUMENT if the variable is no name of a limit. Does not block.
absl::Status CheckInstructionSet();

// As above; if the variable is right, logs the instruction set and the limit, if there is one.
absl::Status LogInstructionSet();

}  // namespace saccade::server
