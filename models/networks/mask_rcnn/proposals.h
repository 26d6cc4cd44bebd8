// The region proposal network, which finds boxes that may contain an object of any class.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "models/layers/convolution.h"
#include "models/networks/mask_rcnn/table.h"
#include "models/networks/resnet/resnet.h"
#include "models/weights/weights.h"

namespace saccade::models {

// Outputs per position of a level: kAspectRatios objectness logits, then four box deltas for each anchor.
inline constexpr int64_t kProposalOutputs = kAspectRatios * 5;

// The RPN's convolutions, shared by all levels. Immutable and thread-safe.
class ProposalHead {
 public:
  explicit ProposalHead(const TensorMap& tensors);

  // Returns [B, kProposalOutputs, H, W].
  at::Tensor operator()(const at::Tensor& level) const;

 private:
  Convolution hidden_;
  Convolution numbers_;  // computes torchvision's two outputs together
};

// Returns the head's output for use on the CPU: float32 [B, H, W, kProposalOutputs], contiguous.
at::Tensor ByPosition(const at::Tensor& numbers);

// The head's output for one picture on one level.
struct LevelProposals {
  at::Tensor numbers;  // float32 [H, W, kProposalOutputs], contiguous and finite
  Size extent;         // the valid part of the level
};

// Returns boxes in the scaled picture, float32 [K, 4] with K <= options.proposals, best first. Takes the best
// of each level, moves and clips them, and suppresses those that overlap a better one of their level. With
// the option `exact`, only positions within the levels' extents count.
at::Tensor Propose(const std::vector<LevelProposals>& levels, const Placement& placement,
                   const MaskRcnnOptions& options);

}  // namespace saccade::models
