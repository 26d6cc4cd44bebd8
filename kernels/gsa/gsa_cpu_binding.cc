#include <torch/library.h>

#include "kernels/common/cpu_run.h"
#include "kernels/common/dtype_dispatch.h"
#include "kernels/gsa/gsa_binding.h"
#include "kernels/gsa/gsa_cpu.h"

namespace saccade::kernels {
namespace {

at::Tensor Run(const GsaCall& call) {
  if (call.out.numel() == 0) return call.out;
  WithAccumulateType(call.problem.dtype, [&]<typename A>(A /*zero*/) {
    RunCpuCode<GsaCpuWorkspaceBytes<A>, RunGsaCpu<A>>(call.problem);
  });
  return call.out;
}

void CheckAttentionOnCpu(const char* op, const char* argument, const at::Tensor& map, const GsaAttention& a,
                         const OptionalTensor& valid) {
  CheckOnCpu(op, argument, map, valid);
  CheckFinite(op, {{"column_embedding", a.column_embedding},
                   {"row_embedding", a.row_embedding},
                   {"middle_scale", a.middle_scale},
                   {"middle_shift", a.middle_shift}});
}

at::Tensor GsaCpu(const at::Tensor& q, const OptionalTensor& k, const at::Tensor& v,
                  const GsaAttention& attention, const OptionalTensor& valid) {
  const GsaCall call = BindGsa(q, k, v, attention, valid);
  CheckAttentionOnCpu("gsa", "q", q, attention, valid);
  return Run(call);
}

at::Tensor GsaModuleCpu(const at::Tensor& x, const GsaWeights& w, const GsaAttention& attention,
                        const OptionalTensor& valid) {
  constexpr auto kOp = "gsa_module";
  const GsaCall call = BindGsaModule(x, w, attention, valid);
  CheckAttentionOnCpu(kOp, "x", x, attention, valid);
  CheckFinite(kOp, {{"query_weight", w.query_weight},
                    {"key_weight", w.key_weight},
                    {"value_weight", w.value_weight},
                    {"query_bias", w.query_bias},
                    {"key_bias", w.key_bias},
                    {"value_bias", w.value_bias},
                    {"scale", w.scale},
                    {"shift", w.shift}});
  return Run(call);
}

}  // namespace

TORCH_LIBRARY_IMPL(saccade, CPU, m) {
  m.impl("gsa", GsaAs<GsaCpu>);
  m.impl("gsa_module", GsaModuleAs<GsaModuleCpu>);
}

}  // namespace saccade::kernels
