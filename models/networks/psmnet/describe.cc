#include "models/networks/psmnet/describe.h"

#include "models/networks/psmnet/table.h"

namespace saccade::models {

Description DescribePsmnet(const std::string& architecture, const Options& options,
                           const std::vector<std::string>& labels) {
  const PsmnetOptions parsed = ParsePsmnetOptions(architecture, options);
  Description description;
  description.architecture = architecture;
  description.task = Task::kStereo;
  description.input.views = 2;
  description.input.fit = Fit::kKeepRatio;
  description.input.height = kPsmnetNominal.height;
  description.input.width = kPsmnetNominal.width;
  // Disparities are measured in pixels, so a pair is scaled only if it is too large.
  description.input.short_side = 0;
  description.input.long_side = parsed.long_side;
  description.input.buckets = parsed.buckets;
  description.labels = labels;
  description.options = AsText(parsed);
  description.parameters = RecordPsmnet(parsed).counts().AllParameters();
  return description;
}

Counts CountPsmnet(const std::string& architecture, const Options& options) {
  return RecordPsmnet(ParsePsmnetOptions(architecture, options)).counts();
}

NetworkTensors PsmnetTensors(const std::string& architecture, const Options& options) {
  return {RecordPsmnet(ParsePsmnetOptions(architecture, options)).tensors()};
}

}  // namespace saccade::models
