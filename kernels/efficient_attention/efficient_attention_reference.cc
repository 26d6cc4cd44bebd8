#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/where.h>

#include "kernels/common/check.h"
#include "kernels/efficient_attention/efficient_attention_impl.h"

namespace saccade::kernels {
namespace {

// Splits [B, C, N] into [B, heads, C/heads, N].
at::Tensor SplitEaHeads(const at::Tensor& x, int64_t heads) { return x.unflatten(1, {heads, -1}); }

// Returns the valid positions as [B, 1, 1, N].
at::Tensor MaskOf(const at::Tensor& map, const at::Tensor& valid) {
  return ValidMask(map, valid).flatten(2).unsqueeze(1);
}

// Softmax over all valid positions. The padding is masked with a finite number, so that a sample without
// valid positions does not become NaN, and then set to zero.
at::Tensor OverPositions(const at::Tensor& k, const at::Tensor& mask) {
  if (!mask.defined()) return at::softmax(k, -1);
  const at::Tensor lowest = at::full({}, -1e30, k.options());
  return at::softmax(at::where(mask, k, lowest), -1) * mask;
}

// Attends on [B, heads, channels, N]; zero in the padding.
at::Tensor Attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                  std::string_view normalization, const at::Tensor& mask) {
  if (normalization == "softmax") {
    const at::Tensor context = at::matmul(v, OverPositions(k, mask).transpose(-2, -1));
    return at::matmul(context, at::softmax(q, 2));
  }
  const at::Tensor sums = at::matmul(v, k.transpose(-2, -1));
  const at::Tensor context = mask.defined() ? sums / mask.sum(-1, /*keepdim=*/true).clamp_min(1)
                                            : sums / c10::Scalar(k.sym_size(-1));
  return at::matmul(context, q);
}

at::Tensor Project(const at::Tensor& x, const at::Tensor& weights, const OptionalTensor& bias) {
  const at::Tensor y = at::matmul(weights.to(x.scalar_type()).flatten(1), x);
  return bias.has_value() ? y + bias->to(x.scalar_type()).unsqueeze(1) : y;
}

at::Tensor CastAndMask(const at::Tensor& y, const at::Tensor& like, const OptionalTensor& valid) {
  std::vector<c10::SymInt> shape = like.sym_sizes().vec();
  shape[1] = y.sym_size(1);
  return Masked(y.view_symint(shape).to(like.scalar_type()), valid).contiguous(like.suggest_memory_format());
}

}  // namespace

at::Tensor EaReference(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                       std::string_view normalization, const OptionalTensor& valid) {
  CheckEa(q, k, v, heads, normalization, valid);
  const auto accumulate = AccumulateType(q.scalar_type());
  const auto prepare = [&](const at::Tensor& t) {
    return SplitEaHeads(Masked(t.to(accumulate), valid).flatten(2), heads);
  };
  const at::Tensor mask = valid.has_value() ? MaskOf(q, *valid) : at::Tensor();
  const at::Tensor out = Attend(prepare(q), prepare(k), prepare(v), normalization, mask);
  return CastAndMask(out.flatten(1, 2), q, valid);
}

at::Tensor EaModuleReference(const at::Tensor& x, const EaWeights& weights, int64_t heads,
                             std::string_view normalization, bool residual, const OptionalTensor& valid) {
  CheckEaModule(x, weights, heads, normalization, residual, valid);
  const at::Tensor input = Masked(x.to(AccumulateType(x.scalar_type())), valid).flatten(2);
  const at::Tensor mask = valid.has_value() ? MaskOf(x, *valid) : at::Tensor();
  const auto project = [&](const at::Tensor& matrix, const OptionalTensor& bias) {
    const at::Tensor y = Project(input, matrix, bias);
    // The bias also adds to the padding, so mask again.
    return SplitEaHeads(mask.defined() ? y * mask.squeeze(1) : y, heads);
  };
  at::Tensor out =
      Attend(project(weights.query_weight, weights.query_bias), project(weights.key_weight, weights.key_bias),
             project(weights.value_weight, weights.value_bias), normalization, mask)
          .flatten(1, 2);
  if (weights.out_weight.has_value()) out = Project(out, *weights.out_weight, weights.out_bias);
  if (residual) out = out + input;
  return CastAndMask(out, x, valid);
}

}  // namespace saccade::kernels
