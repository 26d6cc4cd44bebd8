// A convolution as it is served: batch norm folded in, weights packed once, activation or addition fused.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "models/layers/batch_norm.h"

namespace saccade::models {

enum class Activation { kNone, kRelu6 };

struct ConvolutionOptions {
  int64_t stride = 1;
  int64_t groups = 1;
  Activation activation = Activation::kNone;
};

// Immutable after construction; calls may run at once on several threads. A picture's result does not depend
// on the others in x, bit for bit (oneDNN's convolutions keep that; ATen's matrix products do not, which is
// why a classifier is one of these too).
class Convolution {
 public:
  // `weight` is [outputs, inputs / groups, k, k] with k odd, padded by k / 2; `affine` follows it.
  Convolution(const at::Tensor& weight, const Affine& affine, const ConvolutionOptions& options);

  // x is float32 [B, inputs, H, W], best channels-last.
  at::Tensor operator()(const at::Tensor& x) const;
  // The same plus `other`, which has the result's shape. REQUIRES: no activation.
  at::Tensor WithSum(const at::Tensor& x, const at::Tensor& other) const;

 private:
  int64_t padding_;
  ConvolutionOptions options_;
  at::Tensor bias_;
  at::Tensor packed_weight_;
};

}  // namespace saccade::models
