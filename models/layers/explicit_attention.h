// Explicitly modelled attention with weights: by position alone, beside a convolution.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "models/layers/batch_norm.h"
#include "models/weights/weights.h"

namespace saccade::models {

// Immutable; calls may run at once on several threads.
class ExplicitAttention {
 public:
  // Of NAME.value.weight, NAME.out.weight and NAME.sigma; `affine` follows it, and `map` is the kind of
  // kernels/expatt. Throws LoadError if sigma is no radius.
  ExplicitAttention(const TensorMap& tensors, const std::string& name, const Affine& affine, std::string map);

  // x is [B, C, H, W]; the result has the attention's channels.
  at::Tensor operator()(const at::Tensor& x) const;

 private:
  std::string name_, map_;
  at::Tensor value_weight_, out_weight_, shift_;
  double sigma_;
};

// Of a batch norm over several parts' channels, that of one part.
Affine PartOf(const Affine& affine, int64_t first, int64_t count);

}  // namespace saccade::models
