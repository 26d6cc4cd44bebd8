// Result shapes without data, for torch.compile, fake tensors and export.
#include <torch/library.h>

#include "kernels/sao/sao_impl.h"

namespace saccade::kernels {
namespace {

at::Tensor SaoMeta(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const OptionalTensor& w,
                   int64_t heads, bool /*global_term*/, const OptionalTensor& valid) {
  CheckSao(q, k, v, w, heads, valid);
  return ResultLike(q, q.sym_size(1));
}

at::Tensor SaoModuleMeta(const at::Tensor& x, const SaoWeights& weights, int64_t heads, bool /*global_term*/,
                         bool /*residual*/, const OptionalTensor& valid) {
  CheckSaoModule(x, weights, heads, valid);
  return ResultLike(x, x.sym_size(1));
}

}  // namespace

TORCH_LIBRARY_IMPL(saccade, Meta, m) {
  m.impl("sao", SaoMeta);
  m.impl("sao_module", SaoModuleAs<SaoModuleMeta>);
}

}  // namespace saccade::kernels
