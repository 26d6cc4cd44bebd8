#include "models/networks/rc3d/describe.h"

#include "models/networks/rc3d/table.h"

namespace saccade::models {

Description DescribeRc3d(const std::string& architecture, const Options& options,
                         const std::vector<std::string>& labels) {
  const Rc3dOptions parsed = ParseRc3dOptions(architecture, options);
  Description description;
  description.architecture = architecture;
  description.task = Task::kActions;
  ImageInput& input = description.input;
  input.medium = Medium::kClip;
  input.clip = {.max_frames = parsed.frames,
                .frame_multiple = kRc3dStride,
                .frames_per_second = parsed.frames_per_second};
  input.height = input.width = parsed.size;
  // As R-C3D scales: to 128 for 112.
  input.short_side = CropShortSide(parsed.size);
  description.classes = parsed.classes;
  description.labels = labels;
  description.options = AsText(parsed);
  description.parameters = RecordRc3d(parsed).counts().AllParameters();
  return description;
}

Counts CountRc3d(const std::string& architecture, const Options& options) {
  return RecordRc3d(ParseRc3dOptions(architecture, options)).counts();
}

NetworkTensors Rc3dTensors(const std::string& architecture, const Options& options) {
  return {RecordRc3d(ParseRc3dOptions(architecture, options)).tensors()};
}

}  // namespace saccade::models
