#include "kernels/sao/sao_binding.h"

#include <ATen/ops/ones.h>

#include "kernels/common/check.h"

namespace saccade::kernels {
namespace {

// The one stride by which all positions follow each other in row-major order, or 0 if there is none.
int64_t PositionStride(const at::Tensor& x) {
  int64_t stride = 0;
  int64_t expected = 0;
  for (int64_t d = x.dim() - 1; d >= 2; --d) {
    if (x.size(d) == 1) continue;
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

FeatureMap MapOf(const at::Tensor& x) {
  return {x.const_data_ptr(), x.stride(0), x.stride(1), PositionStride(x)};
}

SaoCall Bind(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const OptionalTensor& w,
             int64_t heads, bool global_term, const OptionalTensor& valid) {
  SaoCall call;
  call.out = SaoResult(q);
  const auto format = call.out.suggest_memory_format();
  call.q = Readable(q, format);
  call.k = k.is_same(q) ? call.q : Readable(k, format);
  call.v = v.is_same(q) ? call.q : Readable(v, format);
  const auto accumulate = AccumulateType(q.scalar_type());
  call.w =
      w.has_value() ? w->to(accumulate).contiguous() : at::ones({q.size(1)}, q.options().dtype(accumulate));
  if (valid.has_value()) call.valid = valid->contiguous();

  SaoProblem& problem = call.problem;
  problem.batch = q.size(0);
  problem.channels = q.size(1);
  problem.heads = heads;
  problem.spatial_dims = static_cast<int>(q.dim()) - 2;
  problem.positions = 1;
  for (int d = 0; d < problem.spatial_dims; ++d) {
    problem.extent[kMaxSpatialDims - problem.spatial_dims + d] = q.size(2 + d);
    problem.positions *= q.size(2 + d);
  }
  problem.q = MapOf(call.q);
  problem.k = MapOf(call.k);
  problem.v = MapOf(call.v);
  problem.out = call.out.mutable_data_ptr();
  problem.channels_last = format != at::MemoryFormat::Contiguous;
  problem.global_term = global_term;
  problem.w = call.w.const_data_ptr();
  problem.valid = valid.has_value() ? call.valid.const_data_ptr<int64_t>() : nullptr;
  return call;
}

}  // namespace

SaoCall BindSao(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const OptionalTensor& w,
                int64_t heads, bool global_term, const OptionalTensor& valid) {
  CheckSao(q, k, v, w, heads, valid);
  return Bind(q, k, v, w, heads, global_term, valid);
}

SaoCall BindSaoModule(const at::Tensor& x, const at::Tensor& value_weight, const OptionalTensor& w,
                      const at::Tensor& scale, const at::Tensor& shift, int64_t heads, bool global_term,
                      bool residual, const OptionalTensor& valid) {
  CheckSaoModule(x, value_weight, w, scale, shift, heads, valid);
  SaoCall call = Bind(x, x, x, w, heads, global_term, valid);
  const auto accumulate = AccumulateType(x.scalar_type());
  call.value_weight = value_weight.to(accumulate).contiguous();
  call.scale = scale.to(accumulate).contiguous();
  call.shift = shift.to(accumulate).contiguous();
  call.problem.value_weight = call.value_weight.const_data_ptr();
  call.problem.scale = call.scale.const_data_ptr();
  call.problem.shift = call.shift.const_data_ptr();
  call.problem.residual = residual;
  return call;
}

}  // namespace saccade::kernels
