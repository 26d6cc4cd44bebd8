#include "kernels/efficient_attention/efficient_attention_binding.h"

namespace saccade::kernels {
namespace {

EaCall Bind(const at::Tensor& map, int64_t out_channels, int64_t heads, std::string_view normalization,
            const OptionalTensor& valid) {
  EaCall call;
  call.out = ResultLike(map, out_channels);
  EfficientAttentionProblem& problem = call.problem;
  problem.batch = map.size(0);
  problem.dtype = DtypeOf(map);
  problem.heads = heads;
  problem.softmax = normalization == "softmax";
  problem.out = OutputOf(call.out);
  problem.out_channels = out_channels;
  OptionalTensor extents;
  if (valid.has_value()) {
    extents = valid->contiguous();
    call.kept.push_back(*extents);
  }
  problem.extent = ExtentOf(map, extents);
  return call;
}

const void* Keep(const OptionalTensor& weights, const at::Tensor& x, EaCall& call) {
  if (!weights.has_value()) return nullptr;
  call.kept.push_back(Prepared(*weights, x));
  return call.kept.back().const_data_ptr();
}

}  // namespace

EaCall BindEa(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
              std::string_view normalization, const OptionalTensor& valid) {
  CheckEa(q, k, v, heads, normalization, valid);
  EaCall call = Bind(q, v.size(1), heads, normalization, valid);
  call.problem.key_channels = q.size(1);
  call.problem.value_channels = v.size(1);
  call.problem.q = MapOf(q);
  call.problem.k = MapOf(k);
  call.problem.v = MapOf(v);
  return call;
}

EaCall BindEaModule(const at::Tensor& x, const EaWeights& weights, int64_t heads,
                    std::string_view normalization, bool residual, const OptionalTensor& valid) {
  CheckEaModule(x, weights, heads, normalization, residual, valid);
  EaCall call = Bind(x, EaOutChannels(weights).expect_int(), heads, normalization, valid);
  EfficientAttentionProblem& problem = call.problem;
  problem.key_channels = weights.key_weight.size(0);
  problem.value_channels = weights.value_weight.size(0);
  problem.channels = x.size(1);
  problem.x = MapOf(x);
  problem.residual = residual;
  problem.key_weight = Keep(weights.key_weight, x, call);
  problem.query_weight = Keep(weights.query_weight, x, call);
  problem.value_weight = Keep(weights.value_weight, x, call);
  problem.key_bias = Keep(weights.key_bias, x, call);
  problem.query_bias = Keep(weights.query_bias, x, call);
  problem.value_bias = Keep(weights.value_bias, x, call);
  problem.out_weight = Keep(weights.out_weight, x, call);
  problem.out_bias = Keep(weights.out_bias, x, call);
  return call;
}

}  // namespace saccade::kernels
