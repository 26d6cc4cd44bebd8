// Classifies proposals and refines their segments.
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
  at::Tensor scores;   // float32 [K, classes] on the CPU, after the softmax, contiguous
  at::Tensor offsets;  // float32 [K, 2 * classes]: segment offsets of each class
};

// Immutable and thread-safe.
class ActionHead {
 public:
  explicit ActionHead(const TensorMap& tensors);

  // `features` is [K, C, ...] for K >= 1 proposals; their mean over all positions is classified.
  ActionNumbers operator()(const at::Tensor& features) const;

 private:
  Convolution logits_, offsets_;
};

// Returns the best actions in a clip of `frames` frames, best first: moves and clips the proposals, keeps
// those whose score is above the threshold and that are at least kMinSegmentFrames long, and suppresses those
// that overlap a better one of their class. REQUIRES: finite numbers.
Actions FindActions(const ActionNumbers& numbers, const std::vector<Segment>& proposals, int64_t frames,
                    const Rc3dOptions& options);

}  // namespace saccade::models
