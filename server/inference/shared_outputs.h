// Outputs that are written to shared memory instead of the answer.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "server/core/tensor_call.h"
#include "server/shared_memory/shared_memory.h"

namespace saccade::server {

// True if any output is wanted in shared memory.
bool WantsShared(const std::vector<WantedOutput>& wanted);

// Checks, before anything is computed, that the ranges of `wanted` are within registered regions. The error
// names the output.
absl::Status CheckShared(const SharedMemory& memory, const std::vector<WantedOutput>& wanted);

// Writes the shared outputs to their ranges, and replaces their data in `outputs` by the ranges.
absl::Status ShareOutputs(const SharedMemory& memory, const std::vector<WantedOutput>& wanted,
                          std::vector<Tensor>& outputs);

}  // namespace saccade::server
