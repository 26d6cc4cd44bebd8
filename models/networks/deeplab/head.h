// DeepLabV2's output layers, with weights: from the backbone's map to scores.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

#include "kernels/attention/attention.h"
#include "models/layers/convolution.h"
#include "models/networks/deeplab/options.h"
#include "models/networks/resnet/resnet.h"
#include "models/weights/weights.h"

namespace saccade::models {

// Both are immutable; calls may run at once on several threads. They give [B, classes, H, W], of which what
// lies beyond the extents means nothing. Neither spreads padding that is zero already: 1x1 convolutions keep
// to their position, and attention is told the extents.

class AsppHead {
 public:
  explicit AsppHead(const TensorMap& tensors);

  at::Tensor operator()(const FeatureMap& x) const;

 private:
  std::vector<Convolution> convolutions_;
};

class AttentionHead {
 public:
  AttentionHead(const DeepLabOptions& options, const TensorMap& tensors);

  at::Tensor operator()(const FeatureMap& x) const;

 private:
  at::Tensor Attend(const at::Tensor& x, const at::Tensor& valid) const;

  std::string kind_;  // as the operator names it
  bool kronecker_;
  int64_t heads_;
  Convolution reduce_;
  kernels::AttentionWeights weights_;
  std::optional<at::Tensor> coefficient_scale_;  // Kronecker attention's alone
  Convolution classifier_;
};

}  // namespace saccade::models
