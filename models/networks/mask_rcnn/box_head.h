// What is in each region, and where in it.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "models/networks/mask_rcnn/box.h"
#include "models/networks/mask_rcnn/linear.h"
#include "models/networks/mask_rcnn/table.h"
#include "models/weights/weights.h"

namespace saccade::models {

struct BoxNumbers {
  at::Tensor scores;  // float32 [K, classes], the softmax's, contiguous
  at::Tensor deltas;  // float32 [K, 4 * classes]: what moves the region, for each class
};

// Immutable; calls may run at once on several threads.
class BoxHead {
 public:
  BoxHead(const MaskRcnnTable& table, const TensorMap& tensors);

  // regions [K, C, kBoxSide, kBoxSide], channels-last, K >= 1.
  BoxNumbers operator()(const at::Tensor& regions) const;

 private:
  int64_t classes_;
  Linear first_;
  Linear second_;
  Linear numbers_;  // both of torchvision's outputs at once
};

// Found in one picture: its boxes lie in the scaled picture.
struct Found {
  std::vector<Box> boxes;
  std::vector<float> scores;
  std::vector<int64_t> labels;
};

// The best detections, best first: proposals moved and clipped, those whose score is above the threshold,
// without those that overlap a better one of their class. REQUIRES: finite numbers.
Found Detect(const BoxNumbers& numbers, const at::Tensor& proposals, Size picture,
             const MaskRcnnOptions& options);

}  // namespace saccade::models
