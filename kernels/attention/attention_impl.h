// Shared by the files of this operator: the argument checks that every backend runs first, and the reference.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

#include "kernels/attention/attention.h"
#include "kernels/attention/attention_problem.h"
#include "kernels/common/binding.h"

namespace saccade::kernels {

// The channel counts that follow from a module's weights.
struct AttentionShape {
  c10::SymInt key_channels, value_channels, out_channels;
};

// Parses "softmax", "pool" or "1n"; throws c10::Error for anything else.
AttentionKind AttentionKindOf(std::string_view kind);

// Throw c10::Error unless the arguments fit each other. Do not read tensor values.
void CheckAttention(const char* op, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                    int64_t heads, double scale, const OptionalTensor& valid);
AttentionShape CheckAttentionModule(const at::Tensor& x, AttentionKind kind, const AttentionWeights& weights,
                                    int64_t heads, double logit_scale, bool residual,
                                    const OptionalTensor& valid);

// Compositions of ATen operators that follow the formulas directly: differentiable, and the tests' oracle.
// They store the whole matrix of similarities.
at::Tensor AttentionReference(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                              double scale, AttentionKind kind, const OptionalTensor& valid);
at::Tensor AttentionModuleReference(const at::Tensor& x, AttentionKind kind, const AttentionWeights& weights,
                                    int64_t heads, double logit_scale, bool residual,
                                    const OptionalTensor& valid);

// Collects attention_module's arguments, which the dispatcher passes one by one, for the kRun of each
// dispatch key.
using AttentionModuleRun = at::Tensor(const at::Tensor& x, AttentionKind kind,
                                      const AttentionWeights& weights, int64_t heads, double logit_scale,
                                      bool residual, const OptionalTensor& valid);
template <AttentionModuleRun* kRun>
at::Tensor AttentionModuleAs(const at::Tensor& x, std::string_view kind, const OptionalTensor& query_weight,
                             const OptionalTensor& key_weight, const OptionalTensor& value_weight,
                             const OptionalTensor& query_bias, const OptionalTensor& key_bias,
                             const OptionalTensor& value_bias, const OptionalTensor& out_weight,
                             const OptionalTensor& scale, const OptionalTensor& shift, int64_t heads,
                             double logit_scale, bool residual, const OptionalTensor& valid) {
  return kRun(
      x, AttentionKindOf(kind),
      {query_weight, key_weight, value_weight, query_bias, key_bias, value_bias, out_weight, scale, shift},
      heads, logit_scale, residual, valid);
}
using AttentionModuleSchema = decltype(AttentionModuleAs<nullptr>);

}  // namespace saccade::kernels
