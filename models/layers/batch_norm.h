// At inference a batch norm is an affine map per channel, which is folded into the layer before it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "models/weights/weights.h"

namespace saccade::models {

inline constexpr double kBatchNormEpsilon = 1e-5;  // PyTorch's default, which the reference uses too

// y = scale * x + shift, float64 [C].
struct Affine {
  at::Tensor scale;
  at::Tensor shift;
};

// Leaves the values of `channels` channels as they are.
Affine IdentityAffine(int64_t channels);

// Folds the tensors prefix + weight, bias, running_mean, running_var. Throws a LoadError that names the batch
// norm if the result is not finite (a negative variance, a value that is not finite).
Affine FoldBatchNorm(const TensorMap& tensors, const std::string& prefix, double epsilon = kBatchNormEpsilon);

// Returns a convolution's weight, [outputs, ...], with each output scaled: in double precision and rounded to
// float32, in memory of its own, as the file's weights are given back after a load.
at::Tensor ScaledWeight(const at::Tensor& weight, const at::Tensor& scale);

}  // namespace saccade::models
