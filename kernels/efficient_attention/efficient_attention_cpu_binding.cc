#include <torch/library.h>

#include "kernels/common/cpu_run.h"
#include "kernels/efficient_attention/efficient_attention_binding.h"
#include "kernels/efficient_attention/efficient_attention_cpu.h"

namespace saccade::kernels {
namespace {

template <typename A>
void RunAs(const EaCall& call) {
  RunWithWorkspace([&](int threads) { return EaCpuWorkspaceBytes<A>(call.problem, threads); },
                   [&](const Parallel& parallel, std::byte* workspace) {
                     RunEaCpu<A>(call.problem, BestCpuIsa(), parallel, workspace);
                   });
}

at::Tensor Run(const EaCall& call) {
  if (call.out.numel() == 0) return call.out;
  IsDouble(call.problem.dtype) ? RunAs<double>(call) : RunAs<float>(call);
  return call.out;
}

at::Tensor EaCpu(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                 std::string_view normalization, const OptionalTensor& valid) {
  const EaCall call = BindEa(q, k, v, heads, normalization, valid);
  CheckOnCpu("efficient_attention", "q", q, valid);
  return Run(call);
}

at::Tensor EaModuleCpu(const at::Tensor& x, const at::Tensor& key_weight, const at::Tensor& query_weight,
                       const at::Tensor& value_weight, const OptionalTensor& key_bias,
                       const OptionalTensor& query_bias, const OptionalTensor& value_bias,
                       const OptionalTensor& out_weight, const OptionalTensor& out_bias, int64_t heads,
                       std::string_view normalization, bool residual, const OptionalTensor& valid) {
  constexpr auto kOp = "efficient_attention_module";
  const EaCall call = BindEaModule(
      x, {key_weight, query_weight, value_weight, key_bias, query_bias, value_bias, out_weight, out_bias},
      heads, normalization, residual, valid);
  CheckOnCpu(kOp, "x", x, valid);
  CheckFinite(kOp, "key_weight", key_weight);
  CheckFinite(kOp, "query_weight", query_weight);
  CheckFinite(kOp, "value_weight", value_weight);
  CheckFinite(kOp, "key_bias", key_bias);
  CheckFinite(kOp, "query_bias", query_bias);
  CheckFinite(kOp, "value_bias", value_bias);
  CheckFinite(kOp, "out_weight", out_weight);
  CheckFinite(kOp, "out_bias", out_bias);
  return Run(call);
}

}  // namespace

TORCH_LIBRARY_IMPL(saccade, CPU, m) {
  m.impl("efficient_attention", EaCpu);
  m.impl("efficient_attention_module", EaModuleCpu);
}

}  // namespace saccade::kernels
