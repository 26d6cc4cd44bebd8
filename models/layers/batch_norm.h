// Batch norms at inference are an affine map per channel; it is folded into what stands before it.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "models/weights/weights.h"

namespace saccade::models {

inline constexpr double kBatchNormEpsilon = 1e-5;  // PyTorch's default, which the reference keeps

// y = scale * x + shift, float64 [C].
struct Affine {
  at::Tensor scale;
  at::Tensor shift;
};

// From the tensors prefix + weight, bias, running_mean, running_var. Throws LoadError that names the batch
// norm if its statistics are not usable (a negative variance, a value that is not finite).
Affine FoldBatchNorm(const TensorMap& tensors, const std::string& prefix, double epsilon = kBatchNormEpsilon);

}  // namespace saccade::models
