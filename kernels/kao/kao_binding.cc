#include "kernels/kao/kao_binding.h"

#include <torch/library.h>

#include "kernels/common/cpu_run.h"
#include "kernels/kao/kao_cpu.h"

namespace saccade::kernels {
namespace {

KaoCall Bind(KaoKind kind, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
             int64_t value_channels, int64_t heads, const OptionalTensor& valid) {
  KaoCall call;
  call.out = ResultLike(q, value_channels);
  if (valid.has_value()) call.valid = valid->contiguous();
  KaoProblem& problem = call.problem;
  problem.kind = kind;
  problem.batch = q.size(0);
  problem.heads = heads;
  problem.dtype = DtypeOf(q);
  problem.extent = ExtentOf(q, call.valid);
  problem.query_map_channels = problem.key_channels = q.size(1);
  problem.value_map_channels = v.size(1);
  problem.value_channels = value_channels;
  problem.q = MapOf(q);
  problem.k = MapOf(k);
  problem.v = MapOf(v);
  problem.out = OutputOf(call.out);
  return call;
}

const void* Keep(KaoCall* call, const OptionalTensor& weights, const at::Tensor& x) {
  if (!weights.has_value()) return nullptr;
  call->weights.push_back(Prepared(*weights, x));
  return call->weights.back().const_data_ptr();
}

at::Tensor RunOnCpu(const char* op, const char* argument, const at::Tensor& map, const KaoCall& call) {
  CheckOnCpu(op, argument, map, call.valid);
  if (call.out.numel() == 0) return call.out;
  RunCpuCode<KaoCpuWorkspaceBytes, RunKaoCpu>(call.problem);
  return call.out;
}

at::Tensor KaoCpu(KaoKind kind, const KaoArguments& a) {
  const KaoCall call = BindKao(kind, a);
  CheckFinite(KaoName(kind), "coefficient_scale", a.coefficient_scale);
  return RunOnCpu(KaoName(kind), "q", a.q, call);
}

at::Tensor KaoModuleCpu(const KaoModuleArguments& a) {
  constexpr auto kOp = "kao_module";
  const KaoCall call = BindKaoModule(a);
  const KaoWeights& w = a.weights;
  CheckFinite(kOp, {{"query_weight", w.query_weight},
                    {"key_weight", w.key_weight},
                    {"value_weight", w.value_weight},
                    {"query_bias", w.query_bias},
                    {"value_bias", w.value_bias},
                    {"coefficient_scale", w.coefficient_scale},
                    {"scale", w.scale},
                    {"shift", w.shift}});
  return RunOnCpu(kOp, "x", a.x, call);
}

}  // namespace

KaoCall BindKao(KaoKind kind, const KaoArguments& a) {
  CheckKao(kind, a);
  KaoCall call = Bind(kind, a.q, a.k, a.v, a.v.size(1), a.heads, a.valid);
  call.problem.coefficient_scale = Keep(&call, a.coefficient_scale, a.q);
  return call;
}

KaoCall BindKaoModule(const KaoModuleArguments& a) {
  const KaoKind kind = CheckKaoModule(a);
  KaoCall call = Bind(kind, a.x, a.x, a.x, ValueChannels(a).guard_int(__FILE__, __LINE__), a.heads, a.valid);
  KaoProblem& problem = call.problem;
  problem.key_channels = KeyChannels(a).guard_int(__FILE__, __LINE__);
  problem.query_weight = Keep(&call, a.weights.query_weight, a.x);
  problem.key_weight = Keep(&call, a.weights.key_weight, a.x);
  problem.value_weight = Keep(&call, a.weights.value_weight, a.x);
  problem.query_bias = Keep(&call, a.weights.query_bias, a.x);
  problem.value_bias = Keep(&call, a.weights.value_bias, a.x);
  problem.coefficient_scale = Keep(&call, a.weights.coefficient_scale, a.x);
  problem.scale = Keep(&call, a.weights.scale, a.x);
  problem.shift = Keep(&call, a.weights.shift, a.x);
  problem.residual = a.residual;
  return call;
}

TORCH_LIBRARY_IMPL(saccade, CPU, m) {
  m.impl("kao_kv", KaoAs<KaoKind::kMapQueries, KaoCpu>);
  m.impl("kao_qkv", KaoAs<KaoKind::kAverageQueries, KaoCpu>);
  m.impl("kao_module", KaoModuleAs<KaoModuleCpu>);
}

}  // namespace saccade::kernels
