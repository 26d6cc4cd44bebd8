// A linear layer as it is served: weights packed once, ReLU fused.
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
  Linear(const at::Tensor& weight, const at::Tensor& bias, Activation activation);

  // x is float32 [rows, inputs], at least one row, contiguous.
  at::Tensor operator()(const at::Tensor& x) const;

 private:
  Activation activation_;
  at::Tensor packed_weight_;
  at::Tensor bias_;
};

}  // namespace saccade::models
