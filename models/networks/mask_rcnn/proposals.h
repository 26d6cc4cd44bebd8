// The region proposal network, which finds boxes that may contain an object of any class.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "models/layers/convolution.h"
#include "models/networks/mask_rcnn/candidates.h"
#include "models/networks/mask_rcnn/table.h"
#include "models/networks/resnet/resnet.h"
#include "models/weights/weights.h"

namespace saccade::models {

inline constexpr double kMaxProposalOverlap = 0.7;
inline constexpr float kMinProposalSide = 1e-3F;

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

// Returns boxes in the scaled picture, float32 [K, 4] with K <= options.proposals, best first. Moves the
// candidates of each level and clips them, and suppresses those that overlap a better one of their level.
at::Tensor Propose(const std::vector<Candidates>& levels, const Placement& placement,
                   const MaskRcnnOptions& options);

}  // namespace saccade::models
