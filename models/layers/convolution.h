// A convolution as it is served: batch norm folded in; on the CPU weights packed once, activation or addition
// fused, and on a GPU cuDNN's by way of ATen.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/layers/batch_norm.h"
#include "models/layers/packed_weight.h"

namespace saccade::models {

enum class Activation { kNone, kRelu, kRelu6 };

struct ConvolutionOptions {
  int64_t stride = 1;
  // Along the first side of clips and volumes, where it is another; pictures have no such side.
  std::optional<int64_t> depth_stride = std::nullopt;
  int64_t groups = 1;
  int64_t dilation = 1;
  // dilation * (k / 2) if it is not given, which keeps a side at stride 1.
  std::optional<int64_t> padding = std::nullopt;
  Activation activation = Activation::kNone;
  Target target = {};
};

// Calls may run at once on several threads. A picture's result does not depend
// on the others in x, bit for bit (oneDNN's convolutions keep that; ATen's matrix products do not, which is
// why a classifier is one of these too).
class Convolution {
 public:
  // `weight` is [outputs, inputs / groups, k, k], or with three k for volumes; `affine` follows it.
  Convolution(const at::Tensor& weight, const Affine& affine, const ConvolutionOptions& options);

  // x is [B, inputs, (D,) H, W] of the target's type, best channels-last.
  at::Tensor operator()(const at::Tensor& x) const;
  // activation(convolution + other); `other` has the result's shape.
  at::Tensor WithSum(const at::Tensor& x, const at::Tensor& other) const;
  // The same, in the memory of `other`, which it takes. REQUIRES: nobody else reads `other`, and it is dense
  // in channels-last.
  at::Tensor AddedTo(at::Tensor other, const at::Tensor& x) const;

 private:
  at::Tensor Plain(const at::Tensor& x) const;

  Activation activation_;
  at::Tensor bias_;
  PackedWeight::Geometry geometry_;
  std::shared_ptr<PackedWeight> packed_;
  at::Tensor weight_;  // where it is not packed
};

// The following compute where the tensors say.

// NAME.weight and NAME.bias of `tensors` (no bias is zero), for a convolution that no batch norm follows.
Convolution BiasedConvolution(const TensorMap& tensors, const std::string& name,
                              const ConvolutionOptions& options);

// A linear layer over maps of one position, its weight [outputs, inputs]: for its bits' sake a convolution
// too.
Convolution LinearConvolution(const TensorMap& tensors, const std::string& name);

// CONVOLUTION.weight, followed by the batch norm whose tensors are NORM.weight and so on.
Convolution NormedConvolution(const TensorMap& tensors, const std::string& convolution,
                              const std::string& norm, const ConvolutionOptions& options,
                              double epsilon = kBatchNormEpsilon);

}  // namespace saccade::models
