#include <torch/library.h>

#include "kernels/common/cpu_run.h"
#include "kernels/common/dtype_dispatch.h"
#include "kernels/sao/sao_binding.h"
#include "kernels/sao/sao_cpu.h"

namespace saccade::kernels {
namespace {

at::Tensor Run(const SaoCall& call) {
  if (call.out.numel() == 0) return call.out;
  WithStoredType(DtypeOf(call.q), [&]<typename T>(T /*zero*/) {
    RunCpuCode<SaoCpuWorkspaceBytes<T>, RunSaoCpu<T>>(call.problem);
  });
  return call.out;
}

at::Tensor SaoCpu(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const OptionalTensor& w,
                  int64_t heads, bool global_term, const OptionalTensor& valid) {
  constexpr auto kOp = "sao";
  const SaoCall call = BindSao(q, k, v, w, heads, global_term, valid);
  CheckOnCpu(kOp, "q", q, valid);
  CheckFinite(kOp, "w", w);
  return Run(call);
}

at::Tensor SaoModuleCpu(const at::Tensor& x, const SaoWeights& weights, int64_t heads, bool global_term,
                        bool residual, const OptionalTensor& valid) {
  constexpr auto kOp = "sao_module";
  const SaoCall call = BindSaoModule(x, weights, heads, global_term, residual, valid);
  CheckOnCpu(kOp, "x", x, valid);
  // The given weights rather than the call's scores, which may be infinite although the weights are finite.
  CheckFinite(kOp, {{"w", weights.w},
                    {"value_weight", weights.value_weight},
                    {"scale", weights.scale},
                    {"shift", weights.shift},
                    {"query_weight", weights.query_weight},
                    {"key_weight", weights.key_weight}});
  return Run(call);
}

}  // namespace

TORCH_LIBRARY_IMPL(saccade, CPU, m) {
  m.impl("sao", SaoCpu);
  m.impl("sao_module", SaoModuleAs<SaoModuleCpu>);
}

}  // namespace saccade::kernels
