#include <torch/library.h>

#include "kernels/attention/attention_binding.h"
#include "kernels/attention/attention_cpu.h"
#include "kernels/common/cpu_run.h"

namespace saccade::kernels {
namespace {

at::Tensor Run(const char* op, const char* argument, const AttentionCall& call) {
  CheckOnCpu(op, argument, call.q, call.valid);
  if (call.out.numel() == 0) return call.out;
  RunCpuCode<AttentionCpuWorkspaceBytes, RunAttentionCpu>(call.problem);
  return call.out;
}

at::Tensor AttentionCpu(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                        double scale, bool pool, const OptionalTensor& valid) {
  constexpr auto kOp = "attention";
  return Run(kOp, "q",
             BindAttention(kOp, q, k, v, heads, scale,
                           pool ? AttentionKind::kPooled : AttentionKind::kSoftmax, valid));
}

at::Tensor Attention1nCpu(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                          const OptionalTensor& valid) {
  constexpr auto kOp = "attention_1n";
  return Run(kOp, "q", BindAttention(kOp, q, k, v, heads, 1, AttentionKind::kMean, valid));
}

at::Tensor ModuleCpu(const at::Tensor& x, AttentionKind kind, const AttentionWeights& weights, int64_t heads,
                     double logit_scale, bool residual, const OptionalTensor& valid) {
  constexpr auto kOp = "attention_module";
  const AttentionCall call = BindAttentionModule(x, kind, weights, heads, logit_scale, residual, valid);
  const AttentionWeights& w = call.weights;
  CheckFinite(kOp, {{"query_weight", w.query_weight},
                    {"key_weight", w.key_weight},
                    {"value_weight", w.value_weight},
                    {"query_bias", w.query_bias},
                    {"key_bias", w.key_bias},
                    {"value_bias", w.value_bias},
                    {"out_weight", w.out_weight},
                    {"scale", w.scale},
                    {"shift", w.shift}});
  return Run(kOp, "x", call);
}

}  // namespace

TORCH_LIBRARY_IMPL(saccade, CPU, m) {
  m.impl("attention", AttentionCpu);
  m.impl("attention_1n", Attention1nCpu);
  m.impl("attention_module", AttentionModuleAs<ModuleCpu>);
}

}  // namespace saccade::kernels
