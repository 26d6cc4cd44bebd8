#include "models/layers/convolution.h"

#include <ATen/core/List.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <string_view>

namespace saccade::models {
namespace {

// oneDNN itself is not exported by LibTorch; its fused convolutions are reachable as operators.
using Scalars = c10::List<std::optional<at::Scalar>>;
using OptionalText = std::optional<std::string_view>;
using Reorder = at::Tensor(const at::Tensor&, at::IntArrayRef, at::IntArrayRef, at::IntArrayRef, int64_t,
                           at::OptionalIntArrayRef);
using Pointwise = at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
                             at::IntArrayRef, at::IntArrayRef, at::IntArrayRef, int64_t, std::string_view,
                             Scalars, OptionalText);
using PointwiseBinary = at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                   const std::optional<at::Tensor>&, at::IntArrayRef, at::IntArrayRef,
                                   at::IntArrayRef, int64_t, std::string_view, std::optional<at::Scalar>,
                                   OptionalText, Scalars, OptionalText);

template <typename Signature>
c10::TypedOperatorHandle<Signature> Operator(const char* name, const char* overload) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, overload).typed<Signature>();
}

}  // namespace

Convolution::Convolution(const at::Tensor& weight, const Affine& affine, const ConvolutionOptions& options)
    : padding_(weight.size(2) / 2), options_(options), bias_(affine.shift.to(at::kFloat).contiguous()) {
  static const auto reorder = Operator<Reorder>("mkldnn::_reorder_convolution_weight", "");
  const at::Tensor folded = weight.to(at::kDouble).mul(affine.scale.view({-1, 1, 1, 1}));
  packed_weight_ =
      reorder.call(folded.to(at::kFloat).contiguous(at::MemoryFormat::ChannelsLast), {padding_, padding_},
                   {options.stride, options.stride}, {1, 1}, options.groups, std::nullopt);
}

at::Tensor Convolution::operator()(const at::Tensor& x) const {
  static const auto pointwise = Operator<Pointwise>("mkldnn::_convolution_pointwise", "");
  const bool relu6 = options_.activation == Activation::kRelu6;
  Scalars bounds;
  if (relu6) {
    bounds.push_back(at::Scalar(0.0));
    bounds.push_back(at::Scalar(6.0));
  }
  return pointwise.call(x, packed_weight_, bias_, {padding_, padding_}, {options_.stride, options_.stride},
                        {1, 1}, options_.groups, relu6 ? "hardtanh" : "none", bounds, "");
}

at::Tensor Convolution::WithSum(const at::Tensor& x, const at::Tensor& other) const {
  // On one position the layouts cannot be told apart, and the fused operator gives up.
  if (other.size(2) == 1 && other.size(3) == 1) return (*this)(x).add_(other);
  static const auto pointwise = Operator<PointwiseBinary>("mkldnn::_convolution_pointwise", "binary");
  return pointwise.call(x, other, packed_weight_, bias_, {padding_, padding_},
                        {options_.stride, options_.stride}, {1, 1}, options_.groups, "add", std::nullopt,
                        std::nullopt, Scalars(), std::nullopt);
}

}  // namespace saccade::models
