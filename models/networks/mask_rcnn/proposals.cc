#include "models/networks/mask_rcnn/proposals.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/sigmoid.h>

#include <string>

#include "kernels/nms/nms.h"
#include "models/device/transfer.h"
#include "models/networks/mask_rcnn/anchors.h"
#include "models/networks/mask_rcnn/tensors.h"

namespace saccade::models {
namespace {

// Concatenates the weights of the two outputs, so that one convolution computes both.
Convolution Numbers(const TensorMap& tensors) {
  const auto read = [&](const std::string& name) {
    RefuseQuantized(tensors.at(name));
    return tensors.at(name).to(at::kFloat);
  };
  const auto both = [&](const std::string& part) {
    return at::cat({read("rpn.head.cls_logits." + part), read("rpn.head.bbox_pred." + part)});
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

void Gather(const Candidates& level, int index, const Placement& placement, const MaskRcnnOptions& options,
            Gathered& gathered) {
  const Anchors anchors(index, SpacingOf(index, placement.bucket, level.grid, options.exact));
  const auto* logits = level.logits.const_data_ptr<float>();
  const auto* deltas = level.deltas.const_data_ptr<float>();
  for (int64_t i = 0; i < level.logits.numel(); ++i) {
    const int64_t candidate = level.anchors.const_data_ptr<int64_t>()[i];
    const int64_t position = candidate / kAspectRatios;
    const Box anchor =
        anchors.At(position / level.grid.width, position % level.grid.width, candidate % kAspectRatios);
    const Box box = Clipped(Moved(anchor, deltas + 4 * i, kProposalWeights), placement.scaled);
    if (!IsAtLeast(box, kMinProposalSide)) continue;
    gathered.boxes.push_back(box);
    gathered.logits.push_back(logits[i]);
    gathered.levels.push_back(index);
  }
}

}  // namespace

ProposalHead::ProposalHead(const TensorMap& tensors)
    : hidden_(BiasedConvolution(tensors, "rpn.head.conv.0.0", {.activation = Activation::kRelu})),
      numbers_(Numbers(tensors)) {}

at::Tensor ProposalHead::operator()(const at::Tensor& level) const { return numbers_(hidden_(level)); }

at::Tensor Propose(const std::vector<Candidates>& levels, const Placement& placement,
                   const MaskRcnnOptions& options) {
  Gathered gathered;
  for (size_t level = 0; level < levels.size(); ++level) {
    Gather(levels[level], static_cast<int>(level), placement, options, gathered);
  }
  const at::Tensor boxes = AsTensor(gathered.boxes);
  // Large logits become equal as probabilities and are then taken in order, as in torchvision.
  const at::Tensor scores = at::sigmoid(AsTensor(gathered.logits));
  const at::Tensor kept =
      kernels::batched_nms(boxes, scores, AsTensor(gathered.levels), kMaxProposalOverlap, options.proposals);
  return boxes.index_select(0, kept);
}

}  // namespace saccade::models
