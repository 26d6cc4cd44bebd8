#include "models/networks/mask_rcnn/linear.h"

#include <ATen/core/List.h>
#include <ATen/ops/linear.h>

#include <optional>
#include <string_view>

#include "models/device/transfer.h"
#include "models/layers/onednn_operator.h"

namespace saccade::models {
namespace {

// oneDNN's packed product takes half the time of ATen's at a box head's size; its 1x1 convolution is no
// faster.
using Scalars = c10::List<std::optional<at::Scalar>>;
using LinearReorder = at::Tensor(const at::Tensor&, std::optional<int64_t>);
using LinearPointwise = at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
                                   std::string_view, Scalars, std::optional<std::string_view>);

}  // namespace

Linear::Linear(const at::Tensor& weight, const at::Tensor& bias, Activation activation, const Target& target)
    : activation_(activation), bias_(Owned(bias, target).to(TypeOf(target))), packed_(target.packed()) {
  if (!packed_) {
    weight_ = Owned(weight, target).to(TypeOf(target));
    return;
  }
  static const auto reorder = OneDnnOperator<LinearReorder>("mkldnn::_reorder_linear_weight");
  weight_ = reorder.call(weight.to(TypeOf(target)).contiguous(), std::nullopt);
}

at::Tensor Linear::operator()(const at::Tensor& x) const {
  static const auto pointwise = OneDnnOperator<LinearPointwise>("mkldnn::_linear_pointwise");
  if (!packed_) {
    at::Tensor y = at::linear(x, weight_, bias_);
    return activation_ == Activation::kRelu ? y.relu_() : y;
  }
  return pointwise.call(x, weight_, bias_, activation_ == Activation::kRelu ? "relu" : "none", Scalars(), "");
}

}  // namespace saccade::models
