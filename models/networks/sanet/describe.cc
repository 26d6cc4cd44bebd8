#include "models/networks/sanet/describe.h"

#include <cmath>

#include "models/networks/sanet/layers.h"

namespace saccade::models {
namespace {

// The paper's pictures are scaled to 256 and cropped to 224; other sizes keep the ratio.
int64_t ResizeShortSide(int64_t input_size) {
  return static_cast<int64_t>(std::lround(static_cast<double>(input_size) * 256 / 224));
}

}  // namespace

Description DescribeSanet(const std::string& architecture, const Options& options,
                          const std::vector<std::string>& labels) {
  const SanetOptions parsed = ParseSanetOptions(options);
  Description description;
  description.architecture = architecture;
  description.input.height = description.input.width = parsed.input_size;
  description.input.short_side = ResizeShortSide(parsed.input_size);
  description.classes = parsed.classes;
  description.labels = labels;
  description.options = AsText(parsed);
  description.parameters = CountSanet(MakeSanetPlan(parsed)).AllParameters();
  return description;
}

Counts CountSanet(const std::string& /*architecture*/, const Options& options) {
  return CountSanet(MakeSanetPlan(ParseSanetOptions(options)));
}

}  // namespace saccade::models
