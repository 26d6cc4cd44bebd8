#include "models/networks/identity/describe.h"

#include "models/networks/identity/options.h"

namespace saccade::models {

Description DescribeIdentity(const std::string& architecture, const Options& options,
                             const std::vector<std::string>& labels) {
  const IdentityOptions parsed = ParseIdentityOptions(architecture, options);
  Description description;
  description.architecture = architecture;
  description.task = Task::kRestoration;
  description.input.medium = Medium::kVolume;
  description.input.volume = {.max_voxels = parsed.max_voxels, .depth = 1};
  description.input.fit = Fit::kKeepRatio;
  description.input.height = 1;
  description.input.width = 1;
  description.input.short_side = 0;
  description.labels = labels;
  description.options = AsText(parsed);
  description.drills = parsed.Drills();
  return description;
}

Counts CountIdentity(const std::string& architecture, const Options& options) {
  ParseIdentityOptions(architecture, options);
  return {};
}

NetworkTensors IdentityTensors(const std::string& architecture, const Options& options) {
  ParseIdentityOptions(architecture, options);
  return {};
}

}  // namespace saccade::models
