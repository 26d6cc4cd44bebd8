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

absl::StatusOr<HeldRegions> HoldRegions(const SharedMemory& memory, absl::string_view client,
                                        const std::vector<WantedOutput>& wanted) {
  HeldRegions held;
  for (const WantedOutput& output : wanted) {
    if (!output.shared) continue;
    auto region = memory.Hold(*output.shared, client);
    if (!region.ok()) return Named(region.status(), output.name);
    held.push_back({.output = output.name, .range = *output.shared, .region = *std::move(region)});
  }
  return held;
}

absl::Status ShareOutputs(const HeldRegions& held, std::vector<Tensor>& outputs) {
  for (const HeldRegion& to : held) {
    const auto tensor = std::find_if(outputs.begin(), outputs.end(),
                                     [&to](const Tensor& output) { return output.name == to.output; });
    if (tensor == outputs.end()) continue;
    absl::Status written = SharedMemory::Write(to.region, to.range, tensor->data);
    if (!written.ok()) return Named(written, to.output);
    tensor->shared =
        SharedRange{.region = to.range.region, .offset = to.range.offset, .size = tensor->data.size()};
    tensor->data = {};
  }
  return absl::OkStatus();
}

}  // namespace saccade::server
