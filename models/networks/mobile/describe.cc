#include "models/networks/mobile/describe.h"

#include <utility>

#include "models/layers/explicit_maps.h"
#include "models/networks/mobile/layers.h"
#include "models/networks/mobile/parameters.h"
#include "models/networks/mobile/torchvision_names.h"

namespace saccade::models {
namespace {

// Weights trained with older versions have a radius, which was not used, for every kind of map.
std::vector<std::string> UnusedRadiiOf(const MobilePlan& plan) {
  std::vector<std::string> names;
  if (plan.options.map.empty() || HasRadius(plan.options.map)) return names;
  for (const Block& block : plan.blocks) names.push_back(ExpandName(block) + ".sigma");
  return names;
}

}  // namespace

Description DescribeMobile(const std::string& architecture, const Options& options,
                           const std::vector<std::string>& labels) {
  const MobileOptions parsed = ParseMobileOptions(architecture, options);
  Description description;
  description.architecture = architecture;
  description.input = parsed.pictures;
  description.classes = parsed.classes;
  description.labels = labels;
  description.options = AsText(architecture, parsed);
  description.parameters = CountMobile(MakeMobilePlan(parsed)).AllParameters();
  return description;
}

Counts CountMobile(const std::string& architecture, const Options& options) {
  return CountMobile(MakeMobilePlan(ParseMobileOptions(architecture, options)));
}

NetworkTensors MobileTensors(const std::string& architecture, const Options& options) {
  const MobilePlan plan = MakeMobilePlan(ParseMobileOptions(architecture, options));
  WeightNames names{.rename = NameOfTorchvision, .unused = UnusedRadiiOf(plan)};
  if (architecture == "mobilenet_v2") names.written = TorchvisionName;
  return {MobileParameters(plan), std::move(names)};
}

}  // namespace saccade::models
