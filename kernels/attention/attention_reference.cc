#include <ATen/TensorOperators.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/where.h>

#include <limits>
#include <vector>

#include "kernels/attention/attention_impl.h"
#include "kernels/common/check.h"

namespace saccade::kernels {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Returns the map with -infinity outside each sample's extent, whatever the padding holds.
at::Tensor LowestBeyond(const at::Tensor& map, const OptionalTensor& valid) {
  if (!valid.has_value()) return map;
  return at::where(ValidMask(map, *valid), map, at::zeros({}, map.options()).fill_(-kInfinity));
}

// Returns the maximum of every two neighbours along each spatial dimension; a last position without a
// neighbour is kept. One dimension at a time: amax would divide its gradient among equal values, which are
// not expected within a pair.
at::Tensor Pooled(at::Tensor map) {
  for (int64_t d = map.dim() - 1; d >= 2; --d) {
    const c10::SymInt size = map.sym_size(d);
    std::vector<c10::SymInt> padding(static_cast<size_t>(2 * (map.dim() - d)), c10::SymInt(0));
    padding.back() = size % 2;
    map = at::constant_pad_nd_symint(map, padding, -kInfinity);
    const std::vector<c10::SymInt> pairs = {(size + 1) / 2, c10::SymInt(2)};
    map = map.unflatten_symint(d, pairs).amax(d + 1);
  }
  return map;
}

// [B, heads, C/heads, N]
at::Tensor SplitHeads(const at::Tensor& x, int64_t heads) { return x.flatten(2).unflatten(1, {heads, -1}); }

// Returns which keys are valid, [B, 1, *]; undefined if there are no extents. `map` has the extents' size.
at::Tensor Present(const at::Tensor& map, AttentionKind kind, const OptionalTensor& valid) {
  if (!valid.has_value()) return {};
  const at::Tensor mask = ValidMask(map, *valid);
  return kind == AttentionKind::kPooled ? Pooled(mask.to(map.scalar_type())) > 0 : mask;
}

// Returns what keys or values are made of: the map or its maxima, with zeros where there are no keys.
at::Tensor KeyMap(const at::Tensor& map, AttentionKind kind, const OptionalTensor& valid) {
  if (kind != AttentionKind::kPooled) return map;
  const at::Tensor pooled = Pooled(LowestBeyond(map, valid));
  const at::Tensor present = Present(map, kind, valid);
  return present.defined() ? at::where(present, pooled, at::zeros({}, pooled.options())) : pooled;
}

// V f(K^T Q) of maps that are already in the accumulation type and not masked; k and v have one position per
// key.
at::Tensor Attend(const at::Tensor& q, at::Tensor k, at::Tensor v, int64_t heads, double scale,
                  AttentionKind kind, const OptionalTensor& valid) {
  const at::Tensor present = Present(q, kind, valid);
  if (present.defined()) {
    k = at::where(present, k, at::zeros({}, k.options()));
    v = at::where(present, v, at::zeros({}, v.options()));
  }
  const at::Tensor values = SplitHeads(v, heads);
  const at::Tensor keys = SplitHeads(k, heads).transpose(-2, -1);
  const at::Tensor queries = SplitHeads(Masked(q, valid), heads);
  if (kind == AttentionKind::kMean) {
    const at::Tensor context = at::matmul(values, keys);
    const at::Tensor sums = at::matmul(context, queries);
    if (!present.defined()) return sums / c10::Scalar(values.sym_size(-1));
    return sums / present.flatten(1).sum(-1).clamp_min(1).reshape({-1, 1, 1, 1});
  }
  at::Tensor logits = at::matmul(keys, queries) * scale;
  if (present.defined()) {
    // A sample without valid positions is not masked, because a softmax over nothing would be NaN.
    const at::Tensor hidden = ~present.flatten(1) & present.flatten(1).any(1, /*keepdim=*/true);
    logits = logits.masked_fill(hidden.unsqueeze(1).unsqueeze(-1), -kInfinity);
  }
  return at::matmul(values, at::softmax(logits, -2));
}

at::Tensor Transformed(const at::Tensor& x, const OptionalTensor& weight, const OptionalTensor& bias) {
  if (!weight.has_value()) return x;
  at::Tensor y = at::matmul(weight->to(x.scalar_type()).flatten(1), x.flatten(2));
  if (bias.has_value()) y = y + bias->to(x.scalar_type()).unsqueeze(1);
  std::vector<c10::SymInt> shape = x.sym_sizes().vec();
  shape[1] = weight->sym_size(0);
  return y.view_symint(shape);
}

// Converts [B, C, N] to a map of x's dtype and layout.
at::Tensor Result(const at::Tensor& flat, const at::Tensor& x, const OptionalTensor& valid) {
  std::vector<c10::SymInt> shape = x.sym_sizes().vec();
  shape[1] = flat.sym_size(1);
  return Masked(flat.reshape_symint(shape).to(x.scalar_type()), valid).contiguous(x.suggest_memory_format());
}

}  // namespace

at::Tensor AttentionReference(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                              double scale, AttentionKind kind, const OptionalTensor& valid) {
  const auto accumulate = AccumulateType(q.scalar_type());
  const at::Tensor out = Attend(q.to(accumulate), KeyMap(k.to(accumulate), kind, valid),
                                KeyMap(v.to(accumulate), kind, valid), heads, scale, kind, valid);
  return Result(out.flatten(1, 2), v, valid);
}

at::Tensor AttentionModuleReference(const at::Tensor& x, AttentionKind kind, const AttentionWeights& w,
                                    int64_t heads, double logit_scale, bool residual,
                                    const OptionalTensor& valid) {
  CheckAttentionModule(x, kind, w, heads, logit_scale, residual, valid);
  const auto accumulate = AccumulateType(x.scalar_type());
  const at::Tensor input = Masked(x.to(accumulate), valid);
  const at::Tensor keys = KeyMap(input, kind, valid);
  at::Tensor out =
      Attend(Transformed(input, w.query_weight, w.query_bias), Transformed(keys, w.key_weight, w.key_bias),
             Transformed(keys, w.value_weight, w.value_bias), heads, logit_scale, kind, valid)
          .flatten(1, 2);
  if (w.out_weight.has_value()) out = at::matmul(w.out_weight->to(accumulate).flatten(1), out);
  if (w.scale.has_value()) out = out * w.scale->to(accumulate).unsqueeze(1);
  if (w.shift.has_value()) out = out + w.shift->to(accumulate).unsqueeze(1);
  if (residual) out = out + input.flatten(2);
  return Result(out, x, valid);
}

}  // namespace saccade::kernels
