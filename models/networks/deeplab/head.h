// DeepLabV2's output layers with their weights: they compute scores from the backbone's map.
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

// Both heads are immutable and thread-safe. They return [B, classes, H, W], which is undefined beyond the
// extents. If the padding of their input is zero, it does not affect the scores within the extents: ASPP's
// convolutions pad with zeros too, 1x1 convolutions act on single positions, and attention gets the extents.

class AsppHead {
 public:
  explicit AsppHead(const TensorMap& tensors);

  at::Tensor operator()(const FeatureMap& x) const;

 private:
  at::Tensor Scores(const at::Tensor& x) const;

  std::vector<Convolution> convolutions_;
};

class AttentionHead {
 public:
  AttentionHead(const DeepLabOptions& options, const TensorMap& tensors);

  at::Tensor operator()(const FeatureMap& x) const;

 private:
  at::Tensor Attend(const at::Tensor& x, const at::Tensor& valid) const;

  std::string kind_;  // the operator's name for it
  bool kronecker_;
  int64_t heads_;
  Convolution reduce_;
  kernels::AttentionWeights weights_;
  std::optional<at::Tensor> coefficient_scale_;  // only for Kronecker attention
  Convolution classifier_;
};

}  // namespace saccade::models
