// Conversion of tensors to the plain problem that the CPU and CUDA code take.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "kernels/efficient_attention/efficient_attention_impl.h"
#include "kernels/efficient_attention/efficient_attention_problem.h"

namespace saccade::kernels {

// A problem, the result, allocated but not yet written, and the tensors that the problem points into.
struct EaCall {
  EfficientAttentionProblem problem;
  at::Tensor out;
  std::vector<at::Tensor> kept;
};

// Check the arguments, allocate the result, and convert weights that are not of the accumulation type.
EaCall BindEa(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
              std::string_view normalization, const OptionalTensor& valid);
EaCall BindEaModule(const at::Tensor& x, const EaWeights& weights, int64_t heads,
                    std::string_view normalization, bool residual, const OptionalTensor& valid);

}  // namespace saccade::kernels
