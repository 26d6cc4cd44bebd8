// The mask of each detection.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "models/layers/convolution.h"
#include "models/networks/mask_rcnn/table.h"
#include "models/weights/weights.h"

namespace saccade::models {

// Immutable; calls may run at once on several threads.
class MaskHead {
 public:
  explicit MaskHead(const TensorMap& tensors);

  // regions [K, C, kMaskSide, kMaskSide], channels-last, and each one's class; to the logits of that class
  // alone, float32 [K, 2 * kMaskSide, 2 * kMaskSide], contiguous. K >= 1.
  at::Tensor operator()(const at::Tensor& regions, const std::vector<int64_t>& labels) const;

 private:
  at::Tensor Some(const at::Tensor& regions, const int64_t* labels) const;
  at::Tensor Draw(const at::Tensor& blocks, const int64_t* labels) const;

  std::vector<Convolution> layers_;
  Convolution upscale_;       // to 4 * C channels: what the transposed convolution makes of a position
  at::Tensor logits_weight_;  // [classes, C]
  at::Tensor logits_bias_;    // [classes]
};

}  // namespace saccade::models
