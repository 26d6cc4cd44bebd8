#include "server/inference/shared_outputs.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/core/errors.h"

namespace saccade::server {
namespace {

absl::Status Named(const absl::Status& status, const std::string& output) {
  if (status.ok()) return status;
  return {status.code(), absl::StrCat("output ", Shown(output), ": ", status.message())};
}

}  // namespace

bool WantsShared(const std::vector<WantedOutput>& wanted) {
  return std::any_of(wanted.begin(), wanted.end(),
                     [](const WantedOutput& output) { return output.shared.has_value(); });
}

absl::Status CheckShared(const SharedMemory& memory, const std::vector<WantedOutput>& wanted) {
  for (const WantedOutput& output : wanted) {
    if (!output.shared) continue;
    if (absl::Status inside = memory.Check(*output.shared); !inside.ok()) return Named(inside, output.name);
  }
  return absl::OkStatus();
}

absl::Status ShareOutputs(const SharedMemory& memory, const std::vector<WantedOutput>& wanted,
                          std::vector<Tensor>& outputs) {
  for (const WantedOutput& want : wanted) {
    if (!want.shared) continue;
    const auto tensor = std::find_if(outputs.begin(), outputs.end(),
                                     [&want](const Tensor& output) { return output.name == want.name; });
    if (tensor == outputs.end()) continue;
    absl::Status written = memory.Write(*want.shared, tensor->data);
    if (!written.ok()) return Named(written, want.name);
    tensor->shared = SharedRange{
        .region = want.shared->region, .offset = want.shared->offset, .size = tensor->data.size()};
    tensor->data = {};
  }
  return absl::OkStatus();
}

}  // namespace saccade::server
