#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>

#include <limits>

#include "kernels/common/check.h"
#include "kernels/kao/kao_impl.h"

namespace saccade::kernels {
namespace {

// Returns the number of valid rows (dim 0) or columns (dim 1) of each sample, at least 1, as a divisor [B, 1,
// 1].
at::Tensor Count(const at::Tensor& map, const at::Tensor& valid, int64_t dim) {
  return valid.select(1, dim).clamp_min(1).to(map.scalar_type()).view({-1, 1, 1});
}

// C of equation 15, [B, C, W + H]: the column means, then the row means. `map` is already masked.
at::Tensor Averages(const at::Tensor& map, const OptionalTensor& valid) {
  if (!valid.has_value()) return at::cat({map.mean(2), map.mean(3)}, 2);
  return at::cat({map.sum(2) / Count(map, *valid, 0), map.sum(3) / Count(map, *valid, 1)}, 2);
}

// Returns which averages cover any valid position, [B, 1, W + H, 1]. For a sample without valid positions
// returns all, so that its softmax, whose result is discarded, is not NaN.
at::Tensor AveragesMask(const at::Tensor& map, const at::Tensor& valid) {
  const auto inside = [&](int64_t dim) {
    const at::Tensor index = at::arange(c10::Scalar(map.sym_size(2 + dim)), valid.options());
    return index.unsqueeze(0) < valid.select(1, dim).unsqueeze(1);
  };
  const at::Tensor empty = valid.prod(1).eq(0).unsqueeze(1);
  return (at::cat({inside(1), inside(0)}, 1) | empty).unsqueeze(1).unsqueeze(-1);
}

// Equation 1 for each head: v softmax(s k^T q), with the softmax over each column.
at::Tensor Attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                  const OptionalTensor& coefficient_scale, const at::Tensor& mask) {
  const auto split = [&](const at::Tensor& t) { return t.unflatten(1, {heads, -1}); };
  at::Tensor coefficients = at::matmul(split(k).transpose(-2, -1), split(q));
  if (coefficient_scale.has_value()) {
    coefficients = coefficients * coefficient_scale->to(q.scalar_type()).view({heads, 1, 1});
  }
  if (mask.defined()) {
    coefficients = coefficients.masked_fill(~mask, -std::numeric_limits<double>::infinity());
  }
  return at::matmul(split(v), at::softmax(coefficients, -2)).flatten(1, 2);
}

at::Tensor OuterSum(const at::Tensor& averages, const at::Tensor& like) {
  const c10::SymInt columns = like.sym_size(3);
  return averages.slice_symint(2, columns).unsqueeze(3) + averages.slice_symint(2, 0, columns).unsqueeze(2);
}

at::Tensor Transformed(const at::Tensor& vectors, const OptionalTensor& weight, const OptionalTensor& bias) {
  const auto accumulate = vectors.scalar_type();
  at::Tensor out = weight.has_value() ? at::matmul(weight->to(accumulate).flatten(1), vectors) : vectors;
  return bias.has_value() ? out + bias->to(accumulate).unsqueeze(1) : out;
}

at::Tensor AsMap(const at::Tensor& flat, const at::Tensor& like) {
  return flat.unflatten_symint(2, {like.sym_size(2), like.sym_size(3)});
}

}  // namespace

at::Tensor KaoReference(KaoKind kind, const KaoArguments& a) {
  CheckKao(kind, a);
  const auto accumulate = AccumulateType(a.q.scalar_type());
  const auto prepare = [&](const at::Tensor& t) { return Masked(t.to(accumulate), a.valid); };
  const at::Tensor keys = Averages(prepare(a.k), a.valid);
  const at::Tensor values = Averages(prepare(a.v), a.valid);
  const at::Tensor mask = a.valid.has_value() ? AveragesMask(a.q, *a.valid) : at::Tensor();
  const at::Tensor q = prepare(a.q);
  if (kind == KaoKind::kMapQueries) {
    const at::Tensor out = Attend(q.flatten(2), keys, values, a.heads, a.coefficient_scale, mask);
    return MaskedLike(AsMap(out, a.q), a.q, a.valid);
  }
  const at::Tensor out = Attend(Averages(q, a.valid), keys, values, a.heads, a.coefficient_scale, mask);
  return MaskedLike(OuterSum(out, a.q), a.q, a.valid);
}

at::Tensor KaoModuleReference(const KaoModuleArguments& a) {
  const KaoKind kind = CheckKaoModule(a);
  const auto accumulate = AccumulateType(a.x.scalar_type());
  const at::Tensor x = Masked(a.x.to(accumulate), a.valid);
  const at::Tensor averages = Averages(x, a.valid);
  const at::Tensor keys = Transformed(averages, a.weights.key_weight, {});
  const at::Tensor values = Transformed(averages, a.weights.value_weight, a.weights.value_bias);
  const at::Tensor mask = a.valid.has_value() ? AveragesMask(x, *a.valid) : at::Tensor();
  const at::Tensor queries = Transformed(kind == KaoKind::kMapQueries ? x.flatten(2) : averages,
                                         a.weights.query_weight, a.weights.query_bias);
  at::Tensor out = Attend(queries, keys, values, a.heads, a.weights.coefficient_scale, mask);
  out = kind == KaoKind::kMapQueries ? AsMap(out, x) : OuterSum(out, x);
  const auto per_channel = [&](const at::Tensor& t) { return t.to(accumulate).view_symint({-1, 1, 1}); };
  if (a.weights.scale.has_value()) out = out * per_channel(*a.weights.scale);
  if (a.weights.shift.has_value()) out = out + per_channel(*a.weights.shift);
  if (a.residual) out = out + x;
  return MaskedLike(out, a.x, a.valid);
}

}  // namespace saccade::kernels
