#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>

#include "kernels/common/check.h"
#include "kernels/sao/sao_impl.h"

namespace saccade::kernels {
namespace {

// [B, heads, C/heads, N]
at::Tensor SplitSaoHeads(const at::Tensor& x, int64_t heads) {
  return x.flatten(2).unflatten(1, {heads, -1});
}

at::Tensor HeadWeights(const OptionalTensor& w, const at::Tensor& x, int64_t heads) {
  const at::Tensor full =
      w.has_value() ? w->to(x.scalar_type()) : at::ones_symint({x.sym_size(1)}, x.options());
  return full.unflatten(0, {heads, -1}).unsqueeze(1);
}

// Returns both sums of equation 6 before the division by N, for inputs already masked and split into heads.
at::Tensor SumForm(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& w,
                   bool global_term) {
  at::Tensor out = v.sum(-1, /*keepdim=*/true) * at::matmul(w, q);
  if (global_term) out = out + at::matmul(v, at::matmul(w, k).transpose(-2, -1));
  return out;
}

}  // namespace

at::Tensor SaoReference(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                        const OptionalTensor& w, int64_t heads, bool global_term,
                        const OptionalTensor& valid) {
  CheckSao(q, k, v, w, heads, valid);
  const auto accumulate = AccumulateType(q.scalar_type());
  const auto prepare = [&](const at::Tensor& t) {
    return SplitSaoHeads(Masked(t.to(accumulate), valid), heads);
  };
  at::Tensor values = prepare(v);
  // Divided before the sums, like a mean, so that the sums stay small.
  if (valid.has_value()) {
    values = values / ValidMask(q, *valid).flatten(1).sum(-1).clamp_min(1).reshape({-1, 1, 1, 1});
  } else {
    values = values / c10::Scalar(values.sym_size(-1));
  }
  const at::Tensor weights = HeadWeights(w, values.flatten(1, 2), heads);
  const at::Tensor out = SumForm(prepare(q), prepare(k), values, weights, global_term);
  return Masked(out.flatten(1, 2).view_symint(q.sym_sizes()).to(q.scalar_type()), valid)
      .contiguous(q.suggest_memory_format());
}

at::Tensor SaoModuleReference(const at::Tensor& x, const SaoWeights& weights, int64_t heads, bool global_term,
                              bool residual, const OptionalTensor& valid) {
  CheckSaoModule(x, weights, heads, valid);
  const auto accumulate = AccumulateType(x.scalar_type());
  const at::Tensor input = Masked(x.to(accumulate), valid);
  const at::Tensor flat = input.flatten(2);
  const at::Tensor values = at::matmul(weights.value_weight.to(accumulate).flatten(1), flat);
  const auto transformed = [&](const OptionalTensor& weight) {
    return SplitSaoHeads(weight.has_value() ? at::matmul(weight->to(accumulate).flatten(1), flat) : input,
                         heads);
  };
  const at::Tensor sums =
      SumForm(transformed(weights.query_weight), transformed(weights.key_weight),
              SplitSaoHeads(values, heads), HeadWeights(weights.w, input, heads), global_term)
          .flatten(1, 2);
  at::Tensor out =
      sums * weights.scale.to(accumulate).unsqueeze(1) + weights.shift.to(accumulate).unsqueeze(1);
  if (residual) out = out + flat;
  return Masked(out.view_symint(x.sym_sizes()).to(x.scalar_type()), valid)
      .contiguous(x.suggest_memory_format());
}

}  // namespace saccade::kernels
