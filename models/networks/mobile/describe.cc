#include "models/networks/mobile/describe.h"

#include <cmath>

#include "models/networks/mobile/layers.h"

namespace saccade::models {
namespace {

// The paper's pictures are scaled to 256 and cropped to 224; other sizes keep the ratio.
int64_t ResizeShortSide(int64_t input_size) {
  return static_cast<int64_t>(std::lround(static_cast<double>(input_size) * 256 / 224));
}

}  // namespace

Description DescribeMobile(const std::string& architecture, const Options& options,
                           const std::vector<std::string>& labels) {
  const MobileOptions parsed = ParseMobileOptions(architecture, options);
  Description description;
  description.architecture = architecture;
  description.input.height = description.input.width = parsed.input_size;
  description.input.short_side = ResizeShortSide(parsed.input_size);
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
