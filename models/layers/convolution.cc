#include "models/layers/convolution.h"

#include <ATen/core/List.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <string_view>

#include "models/device/transfer.h"
#include "models/layers/onednn_operator.h"

namespace saccade::models {
namespace {

// LibTorch does not export oneDNN itself, but its fused convolutions can be called as operators.
using Scalars = c10::List<std::optional<at::Scalar>>;
using OptionalText = std::optional<std::string_view>;
using Pointwise = at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
                             at::IntArrayRef, at::IntArrayRef, at::IntArrayRef, int64_t, std::string_view,
                             Scalars, OptionalText);
using PointwiseBinary = at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                   const std::optional<at::Tensor>&, at::IntArrayRef, at::IntArrayRef,
                                   at::IntArrayRef, int64_t, std::string_view, std::optional<at::Scalar>,
                                   OptionalText, Scalars, OptionalText);
using PointwiseInPlace = at::Tensor&(at::Tensor&, const at::Tensor&, const at::Tensor&,
                                     const std::optional<at::Tensor>&, at::IntArrayRef, at::IntArrayRef,
                                     at::IntArrayRef, int64_t, std::string_view, std::optional<at::Scalar>,
                                     OptionalText, Scalars, OptionalText);

void Apply(Activation activation, at::Tensor& x) {
  if (activation == Activation::kRelu) x.clamp_min_(0);
  if (activation == Activation::kRelu6) x.clamp_(0, 6);
}

// oneDNN fuses only ReLU with a sum.
OptionalText FusedWithSum(Activation activation) {
  return activation == Activation::kRelu ? OptionalText("relu") : std::nullopt;
}

bool OnePosition(const at::Tensor& x) {
  const auto sizes = x.sizes().slice(2);
  return std::all_of(sizes.begin(), sizes.end(), [](int64_t side) { return side == 1; });
}

PackedWeight::Geometry GeometryOf(const at::Tensor& weight, const ConvolutionOptions& options) {
  const auto dims = static_cast<size_t>(weight.dim() - 2);
  PackedWeight::Geometry geometry{.padding = {},
                                  .stride = std::vector<int64_t>(dims, options.stride),
                                  .dilation = std::vector<int64_t>(dims, options.dilation),
                                  .groups = options.groups};
  if (dims == 3 && options.depth_stride) geometry.stride.front() = *options.depth_stride;
  for (const int64_t kernel : weight.sizes().slice(2)) {
    geometry.padding.push_back(options.padding.value_or(options.dilation * (kernel / 2)));
  }
  return geometry;
}

// Scales in double precision, into memory of its own, as the file's weights are only mapped.
at::Tensor Folded(const at::Tensor& weight, const at::Tensor& scale) {
  std::vector<int64_t> per_channel(static_cast<size_t>(weight.dim()), 1);
  per_channel[0] = -1;
  return weight.to(at::kDouble, /*non_blocking=*/false, /*copy=*/true)
      .mul_(scale.view(per_channel))
      .to(at::kFloat);
}

}  // namespace

Convolution::Convolution(const at::Tensor& weight, const Affine& affine, const ConvolutionOptions& options)
    : activation_(options.activation),
      bias_(affine.shift.to(at::kFloat).contiguous()),
      geometry_(GeometryOf(weight, options)) {
  const Target& target = options.target;
  const at::Tensor folded =
      Folded(weight, affine.scale).to(TypeOf(target)).contiguous(ChannelsLast(weight.dim() - 2));
  bias_ = bias_.to(TypeOf(target)).to(DeviceOf(target));
  if (target.packed()) {
    packed_ = std::make_shared<PackedWeight>(folded, geometry_);
    return;
  }
  weight_ = folded.to(DeviceOf(target));
}

// The convolution without its activation.
at::Tensor Convolution::Plain(const at::Tensor& x) const {
  const std::vector<int64_t> none(geometry_.padding.size(), 0);
  return at::convolution(x, weight_, bias_, geometry_.stride, geometry_.padding, geometry_.dilation,
                         /*transposed=*/false, none, geometry_.groups);
}

at::Tensor Convolution::operator()(const at::Tensor& x) const {
  if (!packed_) {
    at::Tensor y = Plain(x);
    Apply(activation_, y);
    return y;
  }
  static const auto pointwise = OneDnnOperator<Pointwise>("mkldnn::_convolution_pointwise", "");
  Scalars bounds;
  std::string_view activation = "none";
  if (activation_ == Activation::kRelu) activation = "relu";
  if (activation_ == Activation::kRelu6) {
    activation = "hardtanh";
    bounds.push_back(at::Scalar(0.0));
    bounds.push_back(at::Scalar(6.0));
  }
  return pointwise.call(x, packed_->For(x.sizes()), bias_, geometry_.padding, geometry_.stride,
                        geometry_.dilation, geometry_.groups, activation, bounds, "");
}

at::Tensor Convolution::WithSum(const at::Tensor& x, const at::Tensor& other) const {
  if (!packed_) {
    at::Tensor sum = Plain(x).add_(other);
    Apply(activation_, sum);
    return sum;
  }
  // With one position the memory formats cannot be distinguished, and the fused operator throws.
  if (OnePosition(other) || activation_ == Activation::kRelu6) {
    Convolution plain = *this;
    plain.activation_ = Activation::kNone;
    at::Tensor sum = plain(x).add_(other);
    Apply(activation_, sum);
    return sum;
  }
  static const auto pointwise = OneDnnOperator<PointwiseBinary>("mkldnn::_convolution_pointwise", "binary");
  return pointwise.call(x, other, packed_->For(x.sizes()), bias_, geometry_.padding, geometry_.stride,
                        geometry_.dilation, geometry_.groups, "add", std::nullopt, FusedWithSum(activation_),
                        Scalars(), std::nullopt);
}

at::Tensor Convolution::AddedTo(at::Tensor other, const at::Tensor& x) const {
  if (!packed_) {
    other.add_(Plain(x));
    Apply(activation_, other);
    return other;
  }
  if (OnePosition(other) || activation_ == Activation::kRelu6) return other.copy_(WithSum(x, other));
  static const auto pointwise = OneDnnOperator<PointwiseInPlace>("mkldnn::_convolution_pointwise_", "binary");
  return pointwise.call(other, x, packed_->For(x.sizes()), bias_, geometry_.padding, geometry_.stride,
                        geometry_.dilation, geometry_.groups, "add", std::nullopt, FusedWithSum(activation_),
                        Scalars(), std::nullopt);
}

Convolution BiasedConvolution(const TensorMap& tensors, const std::string& name,
                              const ConvolutionOptions& options) {
  ConvolutionOptions placed = options;
  placed.target = tensors.target;
  const at::Tensor& weight = tensors.at(name + ".weight");
  const auto bias = tensors.find(name + ".bias");
  const at::Tensor ones = at::ones({weight.size(0)}, at::kDouble);
  return {
      weight,
      {ones, bias == tensors.end() ? at::zeros({weight.size(0)}, at::kDouble) : bias->second.to(at::kDouble)},
      placed};
}

Convolution LinearConvolution(const TensorMap& tensors, const std::string& name) {
  const at::Tensor weight = tensors.at(name + ".weight");
  const at::Tensor bias = tensors.at(name + ".bias").to(at::kDouble);
  return {weight.view({weight.size(0), weight.size(1), 1, 1}),
          {at::ones({weight.size(0)}, at::kDouble), bias},
          {.target = tensors.target}};
}

Convolution NormedConvolution(const TensorMap& tensors, const std::string& convolution,
                              const std::string& norm, const ConvolutionOptions& options, double epsilon) {
  ConvolutionOptions placed = options;
  placed.target = tensors.target;
  return {tensors.at(convolution + ".weight"), FoldBatchNorm(tensors, norm + ".", epsilon), placed};
}

}  // namespace saccade::models
