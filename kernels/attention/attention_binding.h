// Conversion of tensors to the plain problem that the CPU and CUDA code take.
#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/attention/attention_impl.h"
#include "kernels/attention/attention_problem.h"

namespace saccade::kernels {

// A problem, the tensors that its pointers point into, and the result, allocated but not yet written.
struct AttentionCall {
  AttentionProblem problem;
  at::Tensor q, k, v;  // all three are x in the module
  AttentionWeights weights;
  OptionalTensor valid;
  at::Tensor out;
};

// Check the arguments, allocate the result and fill in the problem. Weights are copied if they are not
// contiguous or not of the accumulation type.
AttentionCall BindAttention(const char* op, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            int64_t heads, double scale, AttentionKind kind, const OptionalTensor& valid);
AttentionCall BindAttentionModule(const at::Tensor& x, AttentionKind kind, const AttentionWeights& weights,
                                  int64_t heads, double logit_scale, bool residual,
                                  const OptionalTensor& valid);

}  // namespace saccade::kernels
