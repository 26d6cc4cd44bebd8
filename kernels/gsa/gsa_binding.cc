#include "kernels/gsa/gsa_binding.h"

namespace saccade::kernels {
namespace {

const void* Keep(const OptionalTensor& weights, const at::Tensor& x, GsaCall& call) {
  if (!weights.has_value()) return nullptr;
  call.kept.push_back(Prepared(*weights, x));
  return call.kept.back().const_data_ptr();
}

int64_t ReachOf(const OptionalTensor& embedding) {
  return embedding.has_value() ? (embedding->size(0) + 1) / 2 : 0;
}

GsaCall Bind(const at::Tensor& map, int64_t key_channels, int64_t value_channels,
             const GsaAttention& attention, const OptionalTensor& valid) {
  GsaCall call;
  call.out = ResultLike(map, value_channels);
  GsaProblem& problem = call.problem;
  problem.batch = map.size(0);
  problem.dtype = DtypeOf(map);
  problem.heads = attention.heads;
  problem.key_channels = key_channels;
  problem.value_channels = value_channels;
  problem.content = ContentOf(attention.content);
  problem.out = OutputOf(call.out);
  OptionalTensor extents;
  if (valid.has_value()) {
    extents = valid->contiguous();
    call.kept.push_back(*extents);
  }
  problem.extent = ExtentOf(map, extents);
  problem.embedding[0] = Keep(attention.column_embedding, map, call);
  problem.embedding[1] = Keep(attention.row_embedding, map, call);
  problem.reach[0] = ReachOf(attention.column_embedding);
  problem.reach[1] = ReachOf(attention.row_embedding);
  problem.middle_scale = Keep(attention.middle_scale, map, call);
  problem.middle_shift = Keep(attention.middle_shift, map, call);
  return call;
}

}  // namespace

GsaCall BindGsa(const at::Tensor& q, const OptionalTensor& k, const at::Tensor& v,
                const GsaAttention& attention, const OptionalTensor& valid) {
  CheckGsa(q, k, v, attention, valid);
  GsaCall call = Bind(q, q.size(1), v.size(1), attention, valid);
  call.problem.q = MapOf(q);
  if (call.problem.content != GsaContent::kNone) call.problem.k = MapOf(*k);
  call.problem.v = MapOf(v);
  return call;
}

GsaCall BindGsaModule(const at::Tensor& x, const GsaWeights& weights, const GsaAttention& attention,
                      const OptionalTensor& valid) {
  CheckGsaModule(x, weights, attention, valid);
  GsaCall call = Bind(x, weights.query_weight.size(0), weights.value_weight.size(0), attention, valid);
  GsaProblem& problem = call.problem;
  problem.channels = x.size(1);
  problem.x = MapOf(x);
  problem.query_weight = Keep(weights.query_weight, x, call);
  problem.query_bias = Keep(weights.query_bias, x, call);
  if (problem.content != GsaContent::kNone) problem.key_weight = Keep(weights.key_weight, x, call);
  problem.value_weight = Keep(weights.value_weight, x, call);
  problem.value_bias = Keep(weights.value_bias, x, call);
  problem.scale = Keep(weights.scale, x, call);
  problem.shift = Keep(weights.shift, x, call);
  return call;
}

}  // namespace saccade::kernels
