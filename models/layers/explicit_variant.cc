#include "models/layers/explicit_variant.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "kernels/expatt/expatt.h"
#include "models/device/transfer.h"
#include "models/layers/attention_maps.h"
#include "models/layers/batch_norm.h"
#include "models/layers/explicit_attention.h"
#include "models/layers/explicit_maps.h"

namespace saccade::models {
namespace {

// Returns [side, side]: each position's sum over its row of G + 1, divided by the sum over its row of G. G is
// 1 where a position meets itself and depends only on the distance, so three columns of the map tell all
// sums: of the corner and of the positions next to it. Two of them, divided, give the step of G + 1 from one
// distance to the next.
at::Tensor RowSumRatios(const std::string& map, int64_t side, double sigma) {
  const int64_t next = std::min<int64_t>(1, side - 1);
  const at::Tensor ones = at::zeros({1, 3, side, side}, at::kDouble);
  ones[0][0][0][0] = 1;
  ones[0][1][0][next] = 1;
  ones[0][2][next][0] = 1;
  const at::Tensor columns = kernels::expatt(ones, map, at::full({}, sigma, at::kDouble))[0];
  const at::Tensor steps = columns[0].div(columns[2]);
  steps[0].copy_(columns[0][0].div(columns[1][0]));
  steps[0][0] = 2;
  steps[0].copy_(steps[0].cumprod(0));
  const at::Tensor by_distance = steps.cumprod(0);  // G + 1
  const at::Tensor sums = by_distance.div(columns[0]);
  return sums.div(sums.sub(static_cast<double>(side * side)));
}

// Attention is not computed in 8 bits, so the transform has no grids and is not measured for them.
Convolution PointTransform(const TensorMap& tensors, const std::string& name, const Affine& affine) {
  return {tensors.at(name + ".weight"), affine, ConvolutionOptions{.target = tensors.target}};
}

}  // namespace

ExplicitVariant::ExplicitVariant(const TensorMap& tensors, const std::string& name, const Affine& affine,
                                 ExplicitVariantOptions options)
    : name_(name),
      options_(std::move(options)),
      value_(PointTransform(tensors, name + ".value",
                            IdentityAffine(tensors.at(name + ".value.weight").size(0)))),
      out_(PointTransform(tensors, name + ".out", affine)) {
  for (int64_t head = 0; head < options_.heads; ++head) {
    double sigma = 1;
    if (HasRadius(options_.map)) {
      sigma = ExplicitRadius(tensors.at(name + ".sigma").flatten()[head], name + ".sigma", options_.map);
    }
    radii_.push_back(Owned(at::full({}, sigma, at::kFloat), tensors.target));
    if (options_.plus_one) continue;
    ratios_.push_back(Owned(RowSumRatios(options_.map, options_.side, sigma), tensors.target));
  }
}

at::Tensor ExplicitVariant::Attended(const at::Tensor& values, int64_t head) const {
  const auto index = static_cast<size_t>(head);
  if (options_.plus_one) return kernels::expatt(values, options_.map, radii_[index]);
  // The ones add nothing to values whose mean is zero: what remains is G's part, divided by the sum with the
  // ones. In float32, because the ratios, of up to hundreds, enlarge what rounding adds.
  const at::Tensor exact = values.to(at::kFloat);
  const at::Tensor mean = exact.mean({2, 3}, /*keepdim=*/true);
  const at::Tensor rest = kernels::expatt(exact - mean, options_.map, radii_[index]);
  return (rest * ratios_[index] + mean).to(values.scalar_type());
}

at::Tensor ExplicitVariant::operator()(const at::Tensor& x) const {
  ProbeExplicit(name_, x, options_.heads,
                [this](const at::Tensor& values, int64_t head) { return Attended(values, head); });
  const at::Tensor values = value_(x);
  const int64_t channels = values.size(1) / options_.heads;
  std::vector<at::Tensor> heads;
  for (int64_t head = 0; head < options_.heads; ++head) {
    heads.push_back(Attended(values.narrow(1, head * channels, channels), head));
  }
  return out_(at::cat(heads, 1));
}

}  // namespace saccade::models
