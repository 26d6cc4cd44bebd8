// The transposed convolution that hourglasses grow by: 3x3x3, stride 2, every side doubled; batch norm folded
// in, and on the CPU weights packed once.
#pragma once

#include <ATen/core/Tensor.h>

#include "models/layers/batch_norm.h"
#include "models/target.h"

namespace saccade::models {

// Immutable after construction; calls may run at once on several threads.
class TransposedConvolution {
 public:
  // `weight` is [inputs, outputs, 3, 3, 3]; `affine` follows it.
  TransposedConvolution(const at::Tensor& weight, const Affine& affine, const Target& target = {});

  // x is [B, inputs, D, H, W] of the target's type, best channels-last; the result is [B, outputs, 2 D, 2 H,
  // 2 W], a tensor of its own. PyTorch's padding = output_padding = 1.
  at::Tensor operator()(const at::Tensor& x) const;

 private:
  at::Tensor bias_;
  at::Tensor weight_;
  bool packed_;
};

}  // namespace saccade::models
