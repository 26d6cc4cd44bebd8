// The transposed convolution of hourglass networks: 3x3x3, stride 2, every side doubled. The batch norm is
// folded in, and on the CPU the weights are packed once.
#pragma once

#include <ATen/core/Tensor.h>

#include "models/api/target.h"
#include "models/layers/batch_norm.h"

namespace saccade::models {

// Immutable and thread-safe.
class TransposedConvolution {
 public:
  // `weight` is [inputs, outputs, 3, 3, 3]; `affine` is applied to the result.
  TransposedConvolution(const at::Tensor& weight, const Affine& affine, const Target& target = {});

  // x is [B, inputs, D, H, W] of the target's type, preferably channels-last; the result is a new tensor [B,
  // outputs, 2 D, 2 H, 2 W]. Corresponds to PyTorch's padding = output_padding = 1.
  at::Tensor operator()(const at::Tensor& x) const;

 private:
  at::Tensor bias_;
  at::Tensor weight_;
  bool packed_;
};

}  // namespace saccade::models
