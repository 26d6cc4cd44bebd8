// The temporal proposal network: when something happens, whatever it is.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "models/layers/convolution.h"
#include "models/networks/rc3d/options.h"
#include "models/networks/rc3d/segment.h"
#include "models/weights/weights.h"

namespace saccade::models {

// For every step of the map and every anchor: how likely something happens around it (a logit, whose sigmoid
// is the probability), and two numbers that move it.
struct ProposalNumbers {
  at::Tensor logits;   // float32 [T, anchors] on the CPU, contiguous
  at::Tensor offsets;  // float32 [T, 2 * anchors]
};

// Immutable; calls may run at once on several threads.
class TemporalProposalHead {
 public:
  explicit TemporalProposalHead(const TensorMap& tensors);

  // map is [1, C, T, H, W], channels-last.
  ProposalNumbers operator()(const at::Tensor& map) const;

 private:
  Convolution hidden_, logits_, offsets_;
};

// The best segments of a clip of so many frames, best first, at most options.proposals: anchors moved and
// clipped, without those shorter than kLeastFrames, and without those that overlap a better one by more than
// 0.7. REQUIRES: finite numbers.
std::vector<Segment> Propose(const ProposalNumbers& numbers, int64_t frames, const Rc3dOptions& options);

}  // namespace saccade::models
