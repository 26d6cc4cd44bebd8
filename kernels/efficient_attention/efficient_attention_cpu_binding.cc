#include <torch/library.h>

#include "kernels/common/cpu_run.h"
#include "kernels/common/dtype_dispatch.h"
#include "kernels/efficient_attention/efficient_attention_binding.h"
#include "kernels/efficient_attention/efficient_attention_cpu.h"

namespace saccade::kernels {
namespace {

at::Tensor Run(const EaCall& call) {
  if (call.out.numel() == 0) return call.out;
  WithAccumulateType(call.problem.dtype, [&]<typename A>(A /*zero*/) {
    RunCpuCode<EaCpuWorkspaceBytes<A>, RunEaCpu<A>>(call.problem);
  });
  return call.out;
}

at::Tensor EaCpu(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                 std::string_view normalization, const OptionalTensor& valid) {
  const EaCall call = BindEa(q, k, v, heads, normalization, valid);
  CheckOnCpu("efficient_attention", "q", q, valid);
  return Run(call);
}

at::Tensor EaModuleCpu(const at::Tensor& x, const EaWeights& w, int64_t heads, std::string_view normalization,
                       bool residual, const OptionalTensor& valid) {
  constexpr auto kOp = "efficient_attention_module";
  const EaCall call = BindEaModule(x, w, heads, normalization, residual, valid);
  CheckOnCpu(kOp, "x", x, valid);
  CheckFinite(kOp, {{"key_weight", w.key_weight},
                    {"query_weight", w.query_weight},
                    {"value_weight", w.value_weight},
                    {"key_bias", w.key_bias},
                    {"query_bias", w.query_bias},
                    {"value_bias", w.value_bias},
                    {"out_weight", w.out_weight},
                    {"out_bias", w.out_bias}});
  return Run(call);
}

}  // namespace

TORCH_LIBRARY_IMPL(saccade, CPU, m) {
  m.impl("efficient_attention", EaCpu);
  m.impl("efficient_attention_module", EaModuleAs<EaModuleCpu>);
}

}  // namespace saccade::kernels
