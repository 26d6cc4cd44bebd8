// The temporal proposal network, which finds segments that may contain an action of any class.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "models/layers/convolution.h"
#include "models/networks/rc3d/options.h"
#include "models/networks/rc3d/segment.h"
#include "models/weights/weights.h"

namespace saccade::models {

// Outputs for every step of the map and every anchor: the logit of an action (its sigmoid is the
// probability), and two offsets that move the anchor.
struct ProposalNumbers {
  at::Tensor logits;   // float32 [T, anchors] on the CPU, contiguous
  at::Tensor offsets;  // float32 [T, 2 * anchors]
};

// Immutable and thread-safe.
class TemporalProposalHead {
 public:
  explicit TemporalProposalHead(const TensorMap& tensors);

  // `map` is [1, C, T, H, W], channels-last.
  ProposalNumbers operator()(const at::Tensor& map) const;

 private:
  Convolution hidden_, logits_, offsets_;
};

// Returns the best segments of a clip of `frames` frames, best first, at most options.proposals: moves and
// clips the anchors, drops those shorter than kMinSegmentFrames, and suppresses those that overlap a better
// one by more than 0.7. REQUIRES: finite numbers.
std::vector<Segment> Propose(const ProposalNumbers& numbers, int64_t frames, const Rc3dOptions& options);

}  // namespace saccade::models
