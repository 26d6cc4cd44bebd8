// A linear layer as it is served: on the CPU weights packed once, ReLU fused.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "models/layers/convolution.h"
#include "models/weights/weights.h"

namespace saccade::models {

// Immutable after construction; calls may run at once on several threads. A row's bits may depend on how many
// rows come with it, so one call is for one picture.
class Linear {
 public:
  // `weight` is [outputs, inputs] and `bias` [outputs]. REQUIRES: kNone or kRelu.
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
