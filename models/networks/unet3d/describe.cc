#include "models/networks/unet3d/describe.h"

#include "models/networks/unet3d/table.h"

namespace saccade::models {

Description DescribeUnet(const std::string& architecture, const Options& options,
                         const std::vector<std::string>& labels) {
  const UnetOptions parsed = ParseUnetOptions(architecture, options);
  Description description;
  description.architecture = architecture;
  description.task = Task::kRestoration;
  description.input.medium = Medium::kVolume;
  description.input.volume = {.max_voxels = parsed.max_voxels,
                              .depth_multiple = parsed.projects ? 1 : kUnetMultiple,
                              .side_multiple = kUnetMultiple,
                              .depth = UnetNominalDepth(parsed)};
  description.input.fit = Fit::kKeepRatio;
  description.input.height = kUnetNominalSide;
  description.input.width = kUnetNominalSide;
  description.input.short_side = 0;
  description.labels = labels;
  description.options = AsText(parsed);
  description.parameters = RecordUnet(parsed).counts().AllParameters();
  return description;
}

Counts CountUnet(const std::string& architecture, const Options& options) {
  return RecordUnet(ParseUnetOptions(architecture, options)).counts();
}

NetworkTensors UnetTensors(const std::string& architecture, const Options& options) {
  return {RecordUnet(ParseUnetOptions(architecture, options)).tensors()};
}

}  // namespace saccade::models
