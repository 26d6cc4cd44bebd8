// Result shapes without data, for torch.compile, fake tensors and export.
#include <torch/library.h>

#include "kernels/attention/attention_impl.h"

namespace saccade::kernels {
namespace {

at::Tensor AttentionMeta(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                         double scale, bool /*pool*/, const OptionalTensor& valid) {
  CheckAttention("attention", q, k, v, heads, scale, valid);
  return ResultLike(v, v.sym_size(1));
}

at::Tensor Attention1nMeta(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                           const OptionalTensor& valid) {
  CheckAttention("attention_1n", q, k, v, heads, 1, valid);
  return ResultLike(v, v.sym_size(1));
}

at::Tensor ModuleMeta(const at::Tensor& x, AttentionKind kind, const AttentionWeights& weights, int64_t heads,
                      double logit_scale, bool residual, const OptionalTensor& valid) {
  return ResultLike(x,
                    CheckAttentionModule(x, kind, weights, heads, logit_scale, residual, valid).out_channels);
}

}  // namespace

TORCH_LIBRARY_IMPL(saccade, Meta, m) {
  m.impl("attention", AttentionMeta);
  m.impl("attention_1n", Attention1nMeta);
  m.impl("attention_module", AttentionModuleAs<ModuleMeta>);
}

}  // namespace saccade::kernels
