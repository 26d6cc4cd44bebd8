#include "server/engine/priority_level.h"

#include "absl/strings/str_cat.h"

namespace saccade::server {

absl::Status CheckPriorityLevel(int priority, const std::string& model, const BatcherOptions& options) {
  const int levels = options.priority_levels;
  if (levels == 0 || (priority <= 0 && priority >= -levels)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "priority: is level ", -priority, ", expected a level of model '", model, "', 1 (highest) to ", levels,
      ", or 0 for its default, ", options.default_priority_level, "; in saccade.v1, level n is priority -n"));
}

}  // namespace saccade::server
