// Outputs that clients want in memory that they share, in place of the answer.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "server/core/tensor_call.h"
#include "server/shared_memory/shared_memory.h"

namespace saccade::server {

// Whether any is wanted in shared memory.
bool WantsShared(const std::vector<WantedOutput>& wanted);

// Before anything is computed: the ranges of `wanted` are inside regions that there are. The error names the
// output.
absl::Status CheckShared(const SharedMemory& memory, const std::vector<WantedOutput>& wanted);

// Writes those that are wanted there, and leaves in `outputs` only where.
absl::Status ShareOutputs(const SharedMemory& memory, const std::vector<WantedOutput>& wanted,
                          std::vector<Tensor>& outputs);

}  // namespace saccade::server
