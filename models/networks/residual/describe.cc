#include "models/networks/residual/describe.h"

#include "models/layers/explicit_maps.h"
#include "models/networks/residual/table.h"

namespace saccade::models {
namespace {

// Weights trained with older versions have a radius, which was not used, for every kind of map.
std::vector<std::string> UnusedRadii(const ResidualPlan& plan) {
  std::vector<std::string> names;
  if (HasRadius(plan.options.map)) return names;
  for (const ResidualBlock& block : plan.blocks) {
    for (const SpatialLayer& layer : block.spatial) names.push_back(RadiusName(layer));
  }
  return names;
}

}  // namespace

Description DescribeResidual(const std::string& architecture, const Options& options,
                             const std::vector<std::string>& labels) {
  const ResidualOptions parsed = ParseResidualOptions(architecture, options);
  Description description;
  description.architecture = architecture;
  description.input = parsed.pictures;
  description.classes = parsed.classes;
  description.labels = labels;
  description.options = AsText(architecture, parsed);
  description.parameters = RecordResidual(MakeResidualPlan(parsed)).counts().AllParameters();
  return description;
}

Counts CountResidual(const std::string& architecture, const Options& options) {
  return RecordResidual(MakeResidualPlan(ParseResidualOptions(architecture, options))).counts();
}

NetworkTensors ResidualTensors(const std::string& architecture, const Options& options) {
  const ResidualPlan plan = MakeResidualPlan(ParseResidualOptions(architecture, options));
  return {RecordResidual(plan).tensors(), {.unused = UnusedRadii(plan)}};
}

}  // namespace saccade::models
