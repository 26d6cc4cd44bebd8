#include <torch/library.h>

#include "kernels/common/cpu_run.h"
#include "kernels/gsa/gsa_binding.h"
#include "kernels/gsa/gsa_cpu.h"

namespace saccade::kernels {
namespace {

template <typename A>
void RunAs(const GsaCall& call) {
  RunWithWorkspace([&](int threads) { return GsaCpuWorkspaceBytes<A>(call.problem, threads); },
                   [&](const Parallel& parallel, std::byte* workspace) {
                     RunGsaCpu<A>(call.problem, BestCpuIsa(), parallel, workspace);
                   });
}

at::Tensor Run(const GsaCall& call) {
  if (call.out.numel() == 0) return call.out;
  IsDouble(call.problem.dtype) ? RunAs<double>(call) : RunAs<float>(call);
  return call.out;
}

void CheckAttentionOnCpu(const char* op, const char* argument, const at::Tensor& map,
                         const GsaAttention& attention, const OptionalTensor& valid) {
  CheckOnCpu(op, argument, map, valid);
  CheckFinite(op, "column_embedding", attention.column_embedding);
  CheckFinite(op, "row_embedding", attention.row_embedding);
  CheckFinite(op, "middle_scale", attention.middle_scale);
  CheckFinite(op, "middle_shift", attention.middle_shift);
}

at::Tensor GsaCpu(const at::Tensor& q, const OptionalTensor& k, const at::Tensor& v, int64_t heads,
                  const OptionalTensor& column_embedding, const OptionalTensor& row_embedding,
                  const OptionalTensor& middle_scale, const OptionalTensor& middle_shift,
                  std::string_view content, const OptionalTensor& valid) {
  const GsaAttention attention{heads, column_embedding, row_embedding, middle_scale, middle_shift, content};
  const GsaCall call = BindGsa(q, k, v, attention, valid);
  CheckAttentionOnCpu("gsa", "q", q, attention, valid);
  return Run(call);
}

at::Tensor GsaModuleCpu(const at::Tensor& x, const at::Tensor& query_weight, const OptionalTensor& key_weight,
                        const at::Tensor& value_weight, const OptionalTensor& query_bias,
                        const OptionalTensor& key_bias, const OptionalTensor& value_bias, int64_t heads,
                        const OptionalTensor& column_embedding, const OptionalTensor& row_embedding,
                        const OptionalTensor& middle_scale, const OptionalTensor& middle_shift,
                        const OptionalTensor& scale, const OptionalTensor& shift, std::string_view content,
                        const OptionalTensor& valid) {
  constexpr auto kOp = "gsa_module";
  const GsaAttention attention{heads, column_embedding, row_embedding, middle_scale, middle_shift, content};
  const GsaCall call = BindGsaModule(
      x, {query_weight, key_weight, value_weight, query_bias, key_bias, value_bias, scale, shift}, attention,
      valid);
  CheckAttentionOnCpu(kOp, "x", x, attention, valid);
  CheckFinite(kOp, "query_weight", query_weight);
  CheckFinite(kOp, "key_weight", key_weight);
  CheckFinite(kOp, "value_weight", value_weight);
  CheckFinite(kOp, "query_bias", query_bias);
  CheckFinite(kOp, "key_bias", key_bias);
  CheckFinite(kOp, "value_bias", value_bias);
  CheckFinite(kOp, "scale", scale);
  CheckFinite(kOp, "shift", shift);
  return Run(call);
}

}  // namespace

TORCH_LIBRARY_IMPL(saccade, CPU, m) {
  m.impl("gsa", GsaCpu);
  m.impl("gsa_module", GsaModuleCpu);
}

}  // namespace saccade::kernels
