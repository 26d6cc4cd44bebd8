#include "kernels/sao/sao_binding.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>

#include "kernels/common/check.h"

namespace saccade::kernels {
namespace {

// Returns the constant stride between consecutive positions in row-major order, or 0 if there is none or all
// positions share one element.
int64_t PositionStride(const at::Tensor& x) {
  int64_t stride = 0;
  int64_t expected = 0;
  for (int64_t d = x.dim() - 1; d >= 2; --d) {
    if (x.size(d) == 1) continue;
    if (x.stride(d) == 0) return 0;
    if (stride == 0) stride = expected = x.stride(d);
    if (x.stride(d) != expected) return 0;
    expected *= x.size(d);
  }
  return stride == 0 ? 1 : stride;
}

at::Tensor Readable(const at::Tensor& x, at::MemoryFormat format) {
  const int64_t stride = PositionStride(x);
  const bool channels_last = format != at::MemoryFormat::Contiguous;
  const bool readable = stride != 0 && (channels_last ? x.size(1) == 1 || x.stride(1) == 1 : stride == 1);
  return readable ? x : x.contiguous(format);
}

FlatMap FlatMapOf(const at::Tensor& x) {
  return {x.const_data_ptr(), x.stride(0), x.stride(1), PositionStride(x)};
}

SaoCall Bind(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const OptionalTensor& w,
             int64_t heads, bool global_term, const OptionalTensor& valid) {
  SaoCall call;
  call.out = ResultLike(q, q.sym_size(1));
  const auto format = call.out.suggest_memory_format();
  call.q = Readable(q, format);
  call.k = k.is_same(q) ? call.q : Readable(k, format);
  call.v = v.is_same(q) ? call.q : Readable(v, format);
  call.w = w.has_value() ? Prepared(*w, q)
                         : at::ones({q.size(1)}, q.options().dtype(AccumulateType(q.scalar_type())));
  if (valid.has_value()) call.valid = valid->contiguous();

  SaoProblem& problem = call.problem;
  problem.batch = q.size(0);
  problem.channels = q.size(1);
  problem.heads = heads;
  problem.extent = ExtentOf(q, valid.has_value() ? OptionalTensor(call.valid) : std::nullopt);
  problem.positions = PositionsOf(problem.extent);
  problem.q = FlatMapOf(call.q);
  problem.k = FlatMapOf(call.k);
  problem.v = FlatMapOf(call.v);
  problem.out = call.out.mutable_data_ptr();
  problem.channels_last = format != at::MemoryFormat::Contiguous;
  problem.global_term = global_term;
  problem.w = call.w.const_data_ptr();
  return call;
}

// Returns [heads, C]: a head's score of x is w_h^T (transform x)_h.
at::Tensor FoldedScores(const at::Tensor& transform, const at::Tensor& w, int64_t heads,
                        const at::Tensor& x) {
  const at::Tensor rows = Prepared(transform, x).view({heads, x.size(1) / heads, x.size(1)});
  return (rows * w.view({heads, -1, 1})).sum(1);
}

}  // namespace

SaoCall BindSao(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const OptionalTensor& w,
                int64_t heads, bool global_term, const OptionalTensor& valid) {
  CheckSao(q, k, v, w, heads, valid);
  return Bind(q, k, v, w, heads, global_term, valid);
}

SaoCall BindSaoModule(const at::Tensor& x, const SaoWeights& weights, int64_t heads, bool global_term,
                      bool residual, const OptionalTensor& valid) {
  CheckSaoModule(x, weights, heads, valid);
  SaoCall call = Bind(x, x, x, weights.w, heads, global_term, valid);
  call.value_weight = Prepared(weights.value_weight, x);
  call.scale = Prepared(weights.scale, x);
  call.shift = Prepared(weights.shift, x);
  call.problem.value_weight = call.value_weight.const_data_ptr();
  call.problem.scale = call.scale.const_data_ptr();
  call.problem.shift = call.shift.const_data_ptr();
  call.problem.residual = residual;
  if (weights.query_weight.has_value()) {
    call.query_scores = FoldedScores(*weights.query_weight, call.w, heads, x);
    call.problem.query_scores = call.query_scores.const_data_ptr();
  }
  if (weights.key_weight.has_value()) {
    call.key_scores = FoldedScores(*weights.key_weight, call.w, heads, x);
    call.problem.key_scores = call.key_scores.const_data_ptr();
  }
  return call;
}

}  // namespace saccade::kernels
