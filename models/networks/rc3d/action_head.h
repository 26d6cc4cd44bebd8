// What happens in each proposal, and exactly when.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "models/layers/convolution.h"
#include "models/networks/rc3d/options.h"
#include "models/networks/rc3d/segment.h"
#include "models/tasks/result.h"
#include "models/weights/weights.h"

namespace saccade::models {

struct ActionNumbers {
  at::Tensor scores;   // float32 [K, classes] on the CPU, the softmax's, contiguous
  at::Tensor offsets;  // float32 [K, 2 * classes]: what moves the proposal, for each class
};

// Immutable; calls may run at once on several threads.
class ActionHead {
 public:
  explicit ActionHead(const TensorMap& tensors);

  // features [K, C, ...] of K >= 1 proposals, of which the mean over all positions is judged.
  ActionNumbers operator()(const at::Tensor& features) const;

 private:
  Convolution logits_, offsets_;
};

// The best actions in a clip of so many frames, best first: proposals moved and clipped, those whose score is
// above the threshold, without those shorter than kLeastFrames and those that overlap a better one of their
// class. REQUIRES: finite numbers.
Actions FindActions(const ActionNumbers& numbers, const std::vector<Segment>& proposals, int64_t frames,
                    const Rc3dOptions& options);

}  // namespace saccade::models
