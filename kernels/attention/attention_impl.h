// What the files of this operator share: the checks that every backend makes first, and the reference.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

#include "kernels/attention/attention.h"
#include "kernels/attention/attention_problem.h"
#include "kernels/common/binding.h"

namespace saccade::kernels {

// How a module's weights fit together.
struct AttentionShape {
  c10::SymInt key_channels, value_channels, out_channels;
};

// "softmax", "pool" or "1n"; throws c10::Error for anything else.
AttentionKind AttentionKindOf(std::string_view kind);

// Throw c10::Error unless the arguments fit each other. Values are not looked at.
void CheckAttention(const char* op, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                    int64_t heads, double scale, const OptionalTensor& valid);
AttentionShape CheckAttentionModule(const at::Tensor& x, AttentionKind kind, const AttentionWeights& weights,
                                    int64_t heads, double logit_scale, bool residual,
                                    const OptionalTensor& valid);

// Compositions of ATen operators, straight from the formulas: differentiable, and the tests' oracle. They
// hold the whole matrix of similarities.
at::Tensor AttentionReference(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                              double scale, AttentionKind kind, const OptionalTensor& valid);
at::Tensor AttentionModuleReference(const at::Tensor& x, AttentionKind kind, const AttentionWeights& weights,
                                    int64_t heads, double logit_scale, bool residual,
                                    const OptionalTensor& valid);

// attention_module's arguments as the dispatcher passes them, one by one, for every dispatch key's kRun.
using AttentionModuleRun = at::Tensor(const at::Tensor& x, AttentionKind kind,
                                      const AttentionWeights& weights, int64_t heads, double logit_scale,
                                      bool residual, const OptionalTensor& valid);
template <AttentionModuleRun* kRun>
at::Tensor AttentionModuleArguments(const at::Tensor& x, std::string_view kind,
                                    const OptionalTensor& query_weight, const OptionalTensor& key_weight,
                                    const OptionalTensor& value_weight, const OptionalTensor& query_bias,
                                    const OptionalTensor& key_bias, const OptionalTensor& value_bias,
                                    const OptionalTensor& out_weight, const OptionalTensor& scale,
                                    const OptionalTensor& shift, int64_t heads, double logit_scale,
                                    bool residual, const OptionalTensor& valid) {
  return kRun(
      x, AttentionKindOf(kind),
      {query_weight, key_weight, value_weight, query_bias, key_bias, value_bias, out_weight, scale, shift},
      heads, logit_scale, residual, valid);
}
using AttentionModuleSchema = decltype(AttentionModuleArguments<nullptr>);

}  // namespace saccade::kernels
