#include <torch/library.h>

#include "kernels/common/cpu_run.h"
#include "kernels/common/dtype_dispatch.h"
#include "kernels/expatt/expatt_binding.h"
#include "kernels/expatt/expatt_cpu.h"

namespace saccade::kernels {
namespace {

at::Tensor Run(const ExpattCall& call) {
  if (call.out.numel() == 0) return call.out;
  WithAccumulateType(call.problem.dtype, [&]<typename A>(A /*zero*/) {
    RunCpuCode<ExpattCpuWorkspaceBytes<A>, RunExpattCpu<A>>(call.problem);
  });
  return call.out;
}

at::Tensor ExpattCpu(const at::Tensor& v, std::string_view kind, const at::Tensor& sigma,
                     const OptionalTensor& valid) {
  constexpr auto kOp = "expatt";
  const ExpattKind known = CheckExpatt(v, kind, sigma, valid);
  CheckOnCpu(kOp, "v", v, valid);
  ExpattCall call = BindExpatt(v, known, valid);
  call.problem.sigma = sigma.item<double>();
  CheckSigma(kOp, known, call.problem.sigma);
  return Run(call);
}

at::Tensor ExpattModuleCpu(const at::Tensor& x, const at::Tensor& value_weight,
                           const OptionalTensor& value_bias, const OptionalTensor& out_weight,
                           const OptionalTensor& out_bias, std::string_view kind, double sigma,
                           const OptionalTensor& valid) {
  constexpr auto kOp = "expatt_module";
  const ExpattWeights weights{value_weight, value_bias, out_weight, out_bias};
  const ExpattKind known = CheckExpattModule(x, weights, kind, sigma, valid);
  CheckOnCpu(kOp, "x", x, valid);
  CheckFinite(kOp, {{"value_weight", value_weight},
                    {"value_bias", value_bias},
                    {"out_weight", out_weight},
                    {"out_bias", out_bias}});
  return Run(BindExpattModule(x, weights, known, sigma, valid));
}

}  // namespace

TORCH_LIBRARY_IMPL(saccade, CPU, m) {
  m.impl("expatt", ExpattCpu);
  m.impl("expatt_module", ExpattModuleCpu);
}

}  // namespace saccade::kernels
