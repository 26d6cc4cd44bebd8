// Conversion of tensors to the plain problem that the CPU and CUDA code take.
#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/sao/sao_impl.h"
#include "kernels/sao/sao_problem.h"

namespace saccade::kernels {

// A problem, the tensors that its pointers point into, and the result, allocated but not yet written.
struct SaoCall {
  SaoProblem problem;
  at::Tensor q, k, v, w, value_weight, scale, shift, query_scores, key_scores, valid, out;
};

// Check the arguments (see CheckSao) and copy what the kernels cannot read in place: feature maps without a
// constant stride between positions or with another layout than the result, and weights that are not of the
// accumulation type.
SaoCall BindSao(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const OptionalTensor& w,
                int64_t heads, bool global_term, const OptionalTensor& valid);
SaoCall BindSaoModule(const at::Tensor& x, const SaoWeights& weights, int64_t heads, bool global_term,
                      bool residual, const OptionalTensor& valid);

}  // namespace saccade::kernels
