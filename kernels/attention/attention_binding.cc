#include "kernels/attention/attention_binding.h"

namespace saccade::kernels {
namespace {

const void* DataOf(const OptionalTensor& tensor) {
  return tensor.has_value() ? tensor->const_data_ptr() : nullptr;
}

// Sets the maps, extents and result of a call whose tensors and channels are set.
void BindMaps(AttentionCall* call, int64_t out_channels) {
  AttentionProblem& p = call->problem;
  if (call->valid.has_value()) call->valid = call->valid->contiguous();
  call->out = ResultLike(call->v, out_channels);
  p.dtype = DtypeOf(call->q);
  p.batch = call->q.size(0);
  p.extent = ExtentOf(call->q, call->valid);
  p.q.map = MapOf(call->q);
  p.k.map = MapOf(call->k);
  p.v.map = MapOf(call->v);
  p.q.channels = call->q.size(1);
  p.k.channels = call->k.size(1);
  p.v.channels = call->v.size(1);
  p.out_channels = out_channels;
  p.out = OutputOf(call->out);
}

void BindWeights(AttentionCall* call) {
  AttentionWeights& w = call->weights;
  for (OptionalTensor* weight : {&w.query_weight, &w.key_weight, &w.value_weight, &w.query_bias, &w.key_bias,
                                 &w.value_bias, &w.out_weight, &w.scale, &w.shift}) {
    if (weight->has_value()) *weight = Prepared(**weight, call->q);
  }
  AttentionProblem& p = call->problem;
  p.q.weight = DataOf(w.query_weight);
  p.q.bias = DataOf(w.query_bias);
  p.k.weight = DataOf(w.key_weight);
  p.k.bias = DataOf(w.key_bias);
  p.v.weight = DataOf(w.value_weight);
  p.v.bias = DataOf(w.value_bias);
  p.out_weight = DataOf(w.out_weight);
  p.scale = DataOf(w.scale);
  p.shift = DataOf(w.shift);
}

}  // namespace

AttentionCall BindAttention(const char* op, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            int64_t heads, double scale, AttentionKind kind, const OptionalTensor& valid) {
  CheckAttention(op, q, k, v, heads, scale, valid);
  AttentionCall call;
  call.q = q;
  call.k = k;
  call.v = v;
  call.valid = valid;
  call.problem.kind = kind;
  call.problem.heads = heads;
  call.problem.key_channels = q.size(1);
  call.problem.value_channels = v.size(1);
  call.problem.logit_scale = scale;
  BindMaps(&call, v.size(1));
  return call;
}

AttentionCall BindAttentionModule(const at::Tensor& x, AttentionKind kind, const AttentionWeights& weights,
                                  int64_t heads, double logit_scale, bool residual,
                                  const OptionalTensor& valid) {
  const AttentionShape shape = CheckAttentionModule(x, kind, weights, heads, logit_scale, residual, valid);
  AttentionCall call;
  call.q = call.k = call.v = x;
  call.weights = weights;
  call.valid = valid;
  call.problem.kind = kind;
  call.problem.heads = heads;
  call.problem.key_channels = shape.key_channels.expect_int();
  call.problem.value_channels = shape.value_channels.expect_int();
  call.problem.logit_scale = logit_scale;
  BindMaps(&call, shape.out_channels.expect_int());
  BindWeights(&call);
  if (residual) call.problem.residual = call.problem.q.map;
  return call;
}

}  // namespace saccade::kernels
