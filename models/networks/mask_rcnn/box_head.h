// Classifies regions and refines their boxes.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "models/networks/mask_rcnn/box.h"
#include "models/networks/mask_rcnn/linear.h"
#include "models/networks/mask_rcnn/table.h"
#include "models/weights/weights.h"

namespace saccade::models {

inline constexpr float kMinDetectionSide = 1e-2F;

struct BoxNumbers {
  at::Tensor scores;  // float32 [K, classes], after the softmax, contiguous
  at::Tensor deltas;  // float32 [K, 4 * classes]: box deltas of each class
};

// Immutable and thread-safe.
class BoxHead {
 public:
  BoxHead(const MaskRcnnTable& table, const TensorMap& tensors);

  // `regions` is [K, C, kBoxSide, kBoxSide], channels-last, K >= 1. Returns tensors on the CPU.
  BoxNumbers operator()(const at::Tensor& regions) const;
  // The same, on the regions' device and without waiting for it.
  BoxNumbers OnDevice(const at::Tensor& regions) const;

 private:
  // [K, 5 * classes], of the target's type.
  at::Tensor Outputs(const at::Tensor& regions) const;
  // `outputs` is float32.
  BoxNumbers Split(const at::Tensor& outputs) const;

  int64_t classes_;
  Linear first_;
  Linear second_;
  Linear numbers_;  // computes torchvision's two outputs together
};

// Detections in one picture; boxes are in coordinates of the scaled picture.
struct Found {
  std::vector<Box> boxes;
  std::vector<float> scores;
  std::vector<int64_t> labels;
};

// Returns the best detections, best first: moves and clips the proposals, keeps those whose score is above
// the threshold, and suppresses those that overlap a better one of their class. REQUIRES: finite numbers.
Found Detect(const BoxNumbers& numbers, const at::Tensor& proposals, Size picture,
             const MaskRcnnOptions& options);

}  // namespace saccade::models
