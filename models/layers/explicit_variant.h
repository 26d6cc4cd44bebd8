// Explicitly modelled attention as in the ablations of its paper: without the 1 that is added to G, or with a
// map of its own for each head.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "models/layers/batch_norm.h"
#include "models/layers/convolution.h"
#include "models/weights/weights.h"

namespace saccade::models {

struct ExplicitVariantOptions {
  std::string map;       // as in kernels/expatt
  int64_t heads = 1;     // number of maps; divides the attention's channels
  bool plus_one = true;  // whether the map is Norm(G + 1), or Norm(G)
  int64_t side = 1;      // of the square maps of features
};

// Immutable and thread-safe.
class ExplicitVariant {
 public:
  // Loads the tensors of ExplicitAttention, except that NAME.sigma has a radius for each of several heads.
  // Throws LoadError if a radius is not legal.
  ExplicitVariant(const TensorMap& tensors, const std::string& name, const Affine& affine,
                  ExplicitVariantOptions options);

  // x is [B, C, side, side]; the result has the attention's output channels.
  at::Tensor operator()(const at::Tensor& x) const;

 private:
  at::Tensor Attended(const at::Tensor& values, int64_t head) const;

  std::string name_;
  ExplicitVariantOptions options_;
  std::vector<at::Tensor> radii_;   // one for each head; unused by maps without a radius
  std::vector<at::Tensor> ratios_;  // [side, side] for each head: row sums of G + 1 divided by those of G
  Convolution value_, out_;
};

}  // namespace saccade::models
