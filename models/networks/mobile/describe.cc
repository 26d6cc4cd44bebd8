#include "models/networks/mobile/describe.h"

#include "models/networks/mobile/layers.h"

namespace saccade::models {

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

}  // namespace saccade::models
