#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <numbers>

#include "kernels/common/check.h"
#include "kernels/expatt/expatt_impl.h"

namespace saccade::kernels {
namespace {

// Returns |i - j| for all pairs, [size, size].
at::Tensor Distances(const c10::SymInt& size, const at::TensorOptions& options) {
  const at::Tensor index = at::arange(c10::Scalar(size), options);
  return (index.unsqueeze(1) - index.unsqueeze(0)).abs();
}

// Returns G, [B or 1, H, W, H, W] for pairs of positions. An empty extent is treated as one; the caller masks
// it.
at::Tensor Weights(ExpattKind kind, const at::Tensor& v, const at::Tensor& sigma,
                   const OptionalTensor& valid) {
  const c10::SymInt height = v.sym_size(2);
  const c10::SymInt width = v.sym_size(3);
  const at::Tensor dy = Distances(height, v.options()).unsqueeze(1).unsqueeze(3).unsqueeze(0);
  const at::Tensor dx = Distances(width, v.options()).unsqueeze(0).unsqueeze(2).unsqueeze(0);
  at::Tensor y, x, diagonal_part;
  const at::Tensor squares = dy * dy + dx * dx;
  if (valid.has_value()) {
    const auto extent = [&](int64_t dim) {
      return valid->select(1, dim).clamp_min(1).to(v.scalar_type()).view({-1, 1, 1, 1, 1});
    };
    const at::Tensor h = extent(0);
    const at::Tensor w = extent(1);
    y = dy / h;
    x = dx / w;
    diagonal_part = (squares / (h * h + w * w)).sqrt();
  } else {
    y = dy / c10::Scalar(height);
    x = dx / c10::Scalar(width);
    diagonal_part = (squares / c10::Scalar(height * height + width * width)).sqrt();
  }
  switch (kind) {
    case ExpattKind::kConstant:
      return at::ones_like(squares);
    case ExpattKind::kLinear:
      return 1 - diagonal_part;
    case ExpattKind::kCosine:
      return 0.5 * (1 + at::cos(diagonal_part * std::numbers::pi));
    case ExpattKind::kGaussian:
      return at::exp((y * y + x * x) / (-2 * sigma * sigma));
    case ExpattKind::kExponentialEuclidean:
      return at::exp((y * y + x * x).sqrt() / -sigma);
    case ExpattKind::kExponentialManhattan:
      return at::exp((y + x) / -sigma);
  }
  return {};
}

// Computes Norm(G + 1) V.
at::Tensor Apply(ExpattKind kind, const at::Tensor& v, const at::Tensor& sigma, const OptionalTensor& valid) {
  at::Tensor map = Weights(kind, v, sigma.to(v.scalar_type()), valid) + 1;
  if (valid.has_value()) {
    const at::Tensor keys = ValidMask(v, *valid).unsqueeze(1);  // [B, 1, 1, H, W]
    map = at::where(keys, map, at::zeros({}, map.options()));
  }
  map = map.flatten(3).flatten(1, 2);
  // The sums are at least one, except for empty samples.
  const at::Tensor normalised = map / map.sum(-1, /*keepdim=*/true).clamp_min(1);
  return at::matmul(v.flatten(2), normalised.transpose(1, 2)).view_symint(v.sym_sizes());
}

// Computes a 1x1 convolution.
at::Tensor Mixed(const at::Tensor& weight, const OptionalTensor& bias, const at::Tensor& x) {
  std::vector<c10::SymInt> shape = x.sym_sizes().vec();
  shape[1] = weight.sym_size(0);
  at::Tensor out = at::matmul(weight.to(x.scalar_type()).flatten(1), x.flatten(2));
  if (bias.has_value()) out = out + bias->to(x.scalar_type()).unsqueeze(1);
  return out.view_symint(shape);
}

}  // namespace

at::Tensor ExpattReference(const at::Tensor& v, std::string_view kind, const at::Tensor& sigma,
                           const OptionalTensor& valid) {
  const ExpattKind known = CheckExpatt(v, kind, sigma, valid);
  const at::Tensor values = Masked(v.to(AccumulateType(v.scalar_type())), valid);
  return MaskedLike(Apply(known, values, sigma, valid), v, valid);
}

at::Tensor ExpattModuleReference(const at::Tensor& x, const ExpattWeights& weights, std::string_view kind,
                                 double sigma, const OptionalTensor& valid) {
  const ExpattKind known = CheckExpattModule(x, weights, kind, sigma, valid);
  const at::Tensor input = Masked(x.to(AccumulateType(x.scalar_type())), valid);
  at::Tensor out = Apply(known, Mixed(weights.value, weights.value_bias, input),
                         at::scalar_tensor(sigma, input.options()), valid);
  if (weights.out.has_value()) {
    out = Mixed(*weights.out, weights.out_bias, out);
  } else if (weights.out_bias.has_value()) {
    out = out + weights.out_bias->to(out.scalar_type()).view({-1, 1, 1});
  }
  return MaskedLike(out, x, valid);
}

}  // namespace saccade::kernels
