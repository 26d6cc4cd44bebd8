// Explicitly modelled attention with its weights: maps that depend on positions alone, used beside a
// convolution.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "models/layers/batch_norm.h"
#include "models/weights/weights.h"

namespace saccade::models {

// Immutable and thread-safe.
class ExplicitAttention {
 public:
  // Loads NAME.value.weight, NAME.out.weight and, if the map has a radius, NAME.sigma; `affine` is applied to
  // the result, and `map` is the kind of kernels/expatt. Throws LoadError if sigma is not positive (gaussian:
  // if it is zero).
  ExplicitAttention(const TensorMap& tensors, const std::string& name, const Affine& affine, std::string map);

  // x is [B, C, H, W]; the result has the attention's output channels.
  at::Tensor operator()(const at::Tensor& x) const;

 private:
  std::string name_, map_;
  at::Tensor value_weight_, out_weight_, shift_;
  double sigma_ = 1;  // unused by maps without a radius
};

// Returns the value of a radius of this map; `name` is for errors. Throws LoadError if it is not positive
// (gaussian: if it is zero).
double ExplicitRadius(const at::Tensor& value, const std::string& name, const std::string& map);

// Returns the part of a batch norm's affine map that belongs to `count` channels from `first`.
Affine PartOf(const Affine& affine, int64_t first, int64_t count);

}  // namespace saccade::models
