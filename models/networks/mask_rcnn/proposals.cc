#include "models/networks/mask_rcnn/proposals.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/topk.h>

#include <algorithm>

#include "kernels/nms/nms.h"
#include "models/device/transfer.h"
#include "models/networks/mask_rcnn/anchors.h"
#include "models/networks/mask_rcnn/tensors.h"

namespace saccade::models {
namespace {

constexpr double kMaxOverlap = 0.7;
constexpr float kMinProposalSide = 1e-3F;

// Concatenates the weights of the two outputs, so that one convolution computes both.
Convolution Numbers(const TensorMap& tensors) {
  const auto both = [&](const char* part) {
    return at::cat({tensors.at(std::string("rpn.head.cls_logits.") + part).to(at::kFloat),
                    tensors.at(std::string("rpn.head.bbox_pred.") + part).to(at::kFloat)});
  };
  TensorMap joined = {{"both.weight", both("weight")}, {"both.bias", both("bias")}};
  joined.target = tensors.target;
  return BiasedConvolution(joined, "both", {});
}

// Candidate boxes of all levels, with the input for suppression.
struct Gathered {
  std::vector<Box> boxes;
  std::vector<float> logits;
  std::vector<int64_t> levels;
};

void Gather(const LevelProposals& level, int index, const Placement& placement,
            const MaskRcnnOptions& options, Gathered& gathered) {
  const Size grid{level.numbers.size(0), level.numbers.size(1)};
  const Size usable = options.exact ? level.extent : grid;
  const at::Tensor numbers =
      level.numbers.narrow(0, 0, usable.height).narrow(1, 0, usable.width).contiguous();
  const at::Tensor logits = numbers.narrow(2, 0, kAspectRatios).reshape({-1});
  // Breaks ties with topk, as torchvision does: padding is constant, and so are its logits.
  const auto [best, indices] = at::topk(logits, std::min(options.proposals, logits.numel()));

  const Anchors anchors(index, SpacingOf(index, placement.bucket, grid, options.exact));
  for (int64_t i = 0; i < best.numel(); ++i) {
    const int64_t candidate = indices.const_data_ptr<int64_t>()[i];
    const int64_t position = candidate / kAspectRatios;
    const int64_t ratio = candidate % kAspectRatios;
    const float* deltas =
        numbers.const_data_ptr<float>() + position * kProposalOutputs + kAspectRatios + 4 * ratio;
    const Box anchor = anchors.At(position / usable.width, position % usable.width, ratio);
    const Box box = Clipped(Moved(anchor, deltas, kProposalWeights), placement.scaled);
    if (!IsAtLeast(box, kMinProposalSide)) continue;
    gathered.boxes.push_back(box);
    gathered.logits.push_back(best.const_data_ptr<float>()[i]);
    gathered.levels.push_back(index);
  }
}

}  // namespace

ProposalHead::ProposalHead(const TensorMap& tensors)
    : hidden_(BiasedConvolution(tensors, "rpn.head.conv.0.0", {.activation = Activation::kRelu})),
      numbers_(Numbers(tensors)) {}

at::Tensor ProposalHead::operator()(const at::Tensor& level) const { return numbers_(hidden_(level)); }

at::Tensor ByPosition(const at::Tensor& numbers) {
  return Fetched(numbers).permute({0, 2, 3, 1}).contiguous();
}

at::Tensor Propose(const std::vector<LevelProposals>& levels, const Placement& placement,
                   const MaskRcnnOptions& options) {
  Gathered gathered;
  for (size_t level = 0; level < levels.size(); ++level) {
    Gather(levels[level], static_cast<int>(level), placement, options, gathered);
  }
  const at::Tensor boxes = AsTensor(gathered.boxes);
  // Large logits become equal as probabilities and are then taken in order, as in torchvision.
  const at::Tensor scores = at::sigmoid(AsTensor(gathered.logits));
  const at::Tensor kept =
      kernels::batched_nms(boxes, scores, AsTensor(gathered.levels), kMaxOverlap, options.proposals);
  return boxes.index_select(0, kept);
}

}  // namespace saccade::models
