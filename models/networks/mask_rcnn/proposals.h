// The region proposal network: where there may be something, whatever it is.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "models/layers/convolution.h"
#include "models/networks/mask_rcnn/table.h"
#include "models/networks/resnet/resnet.h"
#include "models/weights/weights.h"

namespace saccade::models {

// For every position of a level, kAspectRatios logits (is there something?), then four numbers for each that
// move its anchor.
inline constexpr int64_t kProposalNumbers = kAspectRatios * 5;

// The RPN's convolutions, shared by the levels. Immutable; calls may run at once on several threads.
class ProposalHead {
 public:
  explicit ProposalHead(const TensorMap& tensors);

  // [B, kProposalNumbers, H, W].
  at::Tensor operator()(const at::Tensor& level) const;

 private:
  Convolution hidden_;
  Convolution numbers_;  // both of torchvision's outputs at once
};

// What the head gave, for the CPU to go on with: float32 [B, H, W, kProposalNumbers], contiguous.
at::Tensor ByPosition(const at::Tensor& numbers);

// What the head gave for one picture on one level.
struct LevelProposals {
  at::Tensor numbers;  // float32 [H, W, kProposalNumbers], contiguous and finite
  Size extent;         // how much of it is the picture's own
};

// Boxes in the scaled picture, float32 [K, 4] with K <= options.proposals, best first: of each level the
// best, moved and clipped, without those that overlap a better one of their level. With the option `exact`,
// of the positions within the levels' extents alone.
at::Tensor Propose(const std::vector<LevelProposals>& levels, const Placement& placement,
                   const MaskRcnnOptions& options);

}  // namespace saccade::models
