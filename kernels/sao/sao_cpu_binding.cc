#include <c10/util/Exception.h>
#include <torch/library.h>

#include "kernels/common/bfloat16.h"
#include "kernels/common/cpu_run.h"
#include "kernels/sao/sao_binding.h"
#include "kernels/sao/sao_cpu.h"

namespace saccade::kernels {
namespace {

template <typename T>
void RunAs(const SaoCall& call) {
  RunWithWorkspace([&](int threads) { return SaoCpuWorkspaceBytes<T>(call.problem, threads); },
                   [&](const Parallel& parallel, std::byte* workspace) {
                     RunSaoCpu<T>(call.problem, BestCpuIsa(), parallel, workspace);
                   });
}

at::Tensor Run(const char* op, const char* argument, const SaoCall& call) {
  CheckOnCpu(op, argument, call.q, call.valid.defined() ? OptionalTensor(call.valid) : std::nullopt);
  CheckFinite(op, "w", call.w);
  if (call.value_weight.defined()) {
    CheckFinite(op, "value_weight", call.value_weight);
    CheckFinite(op, "scale", call.scale);
    CheckFinite(op, "shift", call.shift);
    if (call.query_scores.defined()) CheckFinite(op, "query_weight", call.query_scores);
    if (call.key_scores.defined()) CheckFinite(op, "key_weight", call.key_scores);
  }
  if (call.out.numel() == 0) return call.out;
  switch (call.q.scalar_type()) {
    case at::kFloat:
      RunAs<float>(call);
      break;
    case at::kDouble:
      RunAs<double>(call);
      break;
    default:
      RunAs<BFloat16>(call);
  }
  return call.out;
}

at::Tensor SaoCpu(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const OptionalTensor& w,
                  int64_t heads, bool global_term, const OptionalTensor& valid) {
  return Run("sao", "q", BindSao(q, k, v, w, heads, global_term, valid));
}

at::Tensor SaoModuleCpu(const at::Tensor& x, const at::Tensor& value_weight, const OptionalTensor& w,
                        const at::Tensor& scale, const at::Tensor& shift, int64_t heads, bool global_term,
                        bool residual, const OptionalTensor& valid, const OptionalTensor& query_weight,
                        const OptionalTensor& key_weight) {
  return Run("sao_module", "x",
             BindSaoModule(x, value_weight, w, scale, shift, heads, global_term, residual, valid,
                           query_weight, key_weight));
}

}  // namespace

TORCH_LIBRARY_IMPL(saccade, CPU, m) {
  m.impl("sao", SaoCpu);
  m.impl("sao_module", SaoModuleCpu);
}

}  // namespace saccade::kernels
