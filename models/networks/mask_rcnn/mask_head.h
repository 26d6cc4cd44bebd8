// Computes the mask of each detection.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "models/layers/convolution.h"
#include "models/networks/mask_rcnn/table.h"
#include "models/weights/weights.h"

namespace saccade::models {

// Immutable and thread-safe.
class MaskHead {
 public:
  explicit MaskHead(const TensorMap& tensors);

  // `regions` is [K, C, kMaskSide, kMaskSide], channels-last, K >= 1; `labels` has the class of each. Returns
  // the logits of that class alone, float32 [K, 2 * kMaskSide, 2 * kMaskSide] on the CPU, contiguous.
  at::Tensor operator()(const at::Tensor& regions, const std::vector<int64_t>& labels) const;
  // The same on the regions' device and without waiting for it; `labels` is int64 [K] there.
  at::Tensor OnDevice(const at::Tensor& regions, const at::Tensor& labels) const;

 private:
  // Returns [K, kMaskSide, kMaskSide, 2 * 2 * C], contiguous.
  at::Tensor Blocks(const at::Tensor& regions) const;
  at::Tensor Some(const at::Tensor& regions, const int64_t* labels) const;
  at::Tensor Draw(const at::Tensor& blocks, const int64_t* labels) const;

  bool here_;  // whether masks are drawn by Draw(), or by ATen's operators
  std::vector<Convolution> layers_;
  Convolution upscale_;       // to 4 * C channels: the transposed convolution's block of each position
  at::Tensor logits_weight_;  // [classes, C]
  at::Tensor logits_bias_;    // [classes]
};

}  // namespace saccade::models
