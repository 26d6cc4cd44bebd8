#include "models/networks/mask_rcnn/box_head.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/softmax.h>

#include "kernels/nms/nms.h"
#include "models/device/transfer.h"
#include "models/networks/mask_rcnn/tensors.h"

namespace saccade::models {
namespace {

constexpr auto kHeadPrefix = "roi_heads.box_head.";
constexpr auto kPredictorPrefix = "roi_heads.box_predictor.";

const at::Tensor& Weight(const TensorMap& tensors, const std::string& name) {
  return tensors.at(name + ".weight");
}
const at::Tensor& Bias(const TensorMap& tensors, const std::string& name) {
  return tensors.at(name + ".bias");
}

// Reorders the columns of a weight: torchvision flattens a region channel by channel, but channels-last
// regions lie position by position.
at::Tensor PositionFirst(const at::Tensor& weight, int64_t channels) {
  return weight.view({weight.size(0), channels, kBoxSide * kBoxSide}).transpose(1, 2).reshape(weight.sizes());
}

Linear MakeNumbers(const TensorMap& tensors) {
  const std::string scores = std::string(kPredictorPrefix) + "cls_score";
  const std::string deltas = std::string(kPredictorPrefix) + "bbox_pred";
  const auto both = [](const at::Tensor& a, const at::Tensor& b) {
    return at::cat({a.to(at::kFloat), b.to(at::kFloat)});
  };
  return {both(Weight(tensors, scores), Weight(tensors, deltas)),
          both(Bias(tensors, scores), Bias(tensors, deltas)), Activation::kNone, tensors.target};
}

}  // namespace

BoxHead::BoxHead(const MaskRcnnTable& table, const TensorMap& tensors)
    : classes_(table.options.classes),
      first_(PositionFirst(Weight(tensors, std::string(kHeadPrefix) + "fc6"), table.channels),
             Bias(tensors, std::string(kHeadPrefix) + "fc6"), Activation::kRelu, tensors.target),
      second_(Weight(tensors, std::string(kHeadPrefix) + "fc7"),
              Bias(tensors, std::string(kHeadPrefix) + "fc7"), Activation::kRelu, tensors.target),
      numbers_(MakeNumbers(tensors)) {}

BoxNumbers BoxHead::operator()(const at::Tensor& regions) const { return Split(Fetched(Outputs(regions))); }

BoxNumbers BoxHead::OnDevice(const at::Tensor& regions) const {
  return Split(Outputs(regions).to(at::kFloat));
}

at::Tensor BoxHead::Outputs(const at::Tensor& regions) const {
  const at::Tensor rows = regions.permute({0, 2, 3, 1}).reshape({regions.size(0), -1});
  return numbers_(second_(first_(rows)));
}

BoxNumbers BoxHead::Split(const at::Tensor& outputs) const {
  return {at::softmax(outputs.narrow(1, 0, classes_).contiguous(), 1),
          outputs.narrow(1, classes_, 4 * classes_).contiguous()};
}

Found Detect(const BoxNumbers& numbers, const at::Tensor& proposals, Size picture,
             const MaskRcnnOptions& options) {
  const std::vector<Box> regions = AsBoxes(proposals);
  const auto threshold = static_cast<float>(options.score_threshold);
  const float* score = numbers.scores.const_data_ptr<float>();
  const float* deltas = numbers.deltas.const_data_ptr<float>();
  Found all;
  for (const Box& region : regions) {
    for (int64_t label = 0; label < options.classes; ++label, ++score, deltas += 4) {
      const bool background = label == 0;
      if (background || *score <= threshold) continue;
      const Box box = Clipped(Moved(region, deltas, kDetectionWeights), picture);
      if (!IsAtLeast(box, kMinDetectionSide)) continue;
      all.boxes.push_back(box);
      all.scores.push_back(*score);
      all.labels.push_back(label);
    }
  }
  const at::Tensor kept =
      kernels::batched_nms(AsTensor(all.boxes), AsTensor(all.scores), AsTensor(all.labels),
                           options.nms_threshold, options.detections);
  Found found;
  const auto* index = kept.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < kept.numel(); ++i) {
    const auto from = static_cast<size_t>(index[i]);
    found.boxes.push_back(all.boxes[from]);
    found.scores.push_back(all.scores[from]);
    found.labels.push_back(all.labels[from]);
  }
  return found;
}

}  // namespace saccade::models
