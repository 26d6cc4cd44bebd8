#include "models/networks/deeplab/describe.h"

#include "models/networks/deeplab/table.h"

namespace saccade::models {
namespace {

// Side of the training crops. Their map is 41 x 41, its last position on the last pixel.
constexpr int64_t kNominalSide = 321;

// The network takes blue, green and red from 0 to 255 minus their means, as Caffe's ResNets do.
ImageInput InputOf(const DeepLabOptions& options) {
  constexpr float kStep = 1.0F / 255;
  return {.fit = Fit::kKeepRatio,
          .height = kNominalSide,
          .width = kNominalSide,
          .short_side = 0,
          .long_side = options.long_side,
          .antialias = true,
          .buckets = options.buckets,
          .mean = {104.008F / 255, 116.669F / 255, 122.675F / 255},
          .std = {kStep, kStep, kStep},
          .rgb = false};
}

}  // namespace

Description DescribeDeepLab(const std::string& architecture, const Options& options,
                            const std::vector<std::string>& labels) {
  const DeepLabOptions parsed = ParseDeepLabOptions(architecture, options);
  Description description;
  description.architecture = architecture;
  description.task = Task::kSegmentation;
  description.input = InputOf(parsed);
  description.classes = parsed.classes;
  description.labels = labels;
  description.options = AsText(parsed);
  description.parameters = CountDeepLab(architecture, options).AllParameters();
  return description;
}

Counts CountDeepLab(const std::string& architecture, const Options& options) {
  Ledger ledger;
  RecordDeepLab(ParseDeepLabOptions(architecture, options), {kNominalSide, kNominalSide}, ledger);
  return ledger.counts();
}

NetworkTensors DeepLabTensors(const std::string& architecture, const Options& options) {
  Ledger ledger;
  RecordDeepLab(ParseDeepLabOptions(architecture, options), {kNominalSide, kNominalSide}, ledger);
  // Backbones are often saved together with the classifier they were trained with.
  return {ledger.tensors(), {.unused = {"fc."}}};
}

}  // namespace saccade::models
