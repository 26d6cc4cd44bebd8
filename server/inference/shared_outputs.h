// Outputs that are written to shared memory instead of the answer.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/core/tensor_call.h"
#include "server/shared_memory/shared_memory.h"

namespace saccade::server {

// True if any output is wanted in shared memory.
bool WantsShared(const std::vector<WantedOutput>& wanted);

// Where an output is to be written.
struct HeldRegion {
  std::string output;
  SharedRange range;
  SharedMemory::Held region;
};
using HeldRegions = std::vector<HeldRegion>;

// Checks, before anything is computed, that the ranges of `wanted` are within registered regions, and holds
// the regions: a client may unregister them while it waits. The error names the output. `client` is
// SharedMemory's.
absl::StatusOr<HeldRegions> HoldRegions(const SharedMemory& memory, absl::string_view client,
                                        const std::vector<WantedOutput>& wanted);

// Writes the shared outputs to their ranges, and replaces their data in `outputs` by the ranges.
absl::Status ShareOutputs(const HeldRegions& held, std::vector<Tensor>& outputs);

}  // namespace saccade::server
