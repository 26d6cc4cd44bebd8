// A linear layer for serving: on the CPU the weights are packed once and ReLU is fused.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "models/layers/convolution.h"
#include "models/weights/weights.h"

namespace saccade::models {

// Immutable and thread-safe. A row's exact result may depend on the number of rows, so call it once per
// picture.
class Linear {
 public:
  // `weight` is [outputs, inputs] and `bias` [outputs]. REQUIRES: `activation` is kNone or kRelu.
  Linear(const at::Tensor& weight, const at::Tensor& bias, Activation activation, const Target& target);

  // x is [rows, inputs] of the target's type, at least one row, contiguous.
  at::Tensor operator()(const at::Tensor& x) const;

 private:
  Activation activation_;
  at::Tensor bias_;
  bool packed_;
  at::Tensor weight_;
};

}  // namespace saccade::models
