#include "models/layers/transposed_convolution.h"

#include <ATen/core/List.h>
#include <ATen/ops/convolution.h>

#include <optional>
#include <string_view>
#include <vector>

#include "models/device/transfer.h"
#include "models/layers/onednn_operator.h"

namespace saccade::models {
namespace {

// As in convolution.cc, oneDNN's packed form can be called as operators.
using Scalars = c10::List<std::optional<at::Scalar>>;
using OptionalText = std::optional<std::string_view>;
using TransposedReorder = at::Tensor(const at::Tensor&, at::IntArrayRef, at::IntArrayRef, at::IntArrayRef,
                                     at::IntArrayRef, int64_t, at::OptionalIntArrayRef);
using TransposedPointwise = at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
                                       at::IntArrayRef, at::IntArrayRef, at::IntArrayRef, at::IntArrayRef,
                                       int64_t, std::string_view, Scalars, OptionalText);

const std::vector<int64_t> kOnes = {1, 1, 1};
const std::vector<int64_t> kTwos = {2, 2, 2};

}  // namespace

TransposedConvolution::TransposedConvolution(const at::Tensor& weight, const Affine& affine,
                                             const Target& target)
    : bias_(affine.shift.to(TypeOf(target)).contiguous().to(DeviceOf(target))), packed_(target.packed()) {
  static const auto reorder =
      OneDnnOperator<TransposedReorder>("mkldnn::_reorder_convolution_transpose_weight");
  const at::Tensor folded = weight.to(at::kDouble).mul(affine.scale.view({1, -1, 1, 1, 1})).to(at::kFloat);
  if (!packed_) {
    weight_ = folded.to(TypeOf(target)).to(DeviceOf(target));
    return;
  }
  weight_ = reorder.call(folded.to(TypeOf(target)).contiguous(), kOnes, kOnes, kTwos, kOnes, /*groups=*/1,
                         std::nullopt);
}

at::Tensor TransposedConvolution::operator()(const at::Tensor& x) const {
  static const auto pointwise =
      OneDnnOperator<TransposedPointwise>("mkldnn::_convolution_transpose_pointwise");
  if (!packed_) {
    return at::convolution(x, weight_, bias_, kTwos, kOnes, kOnes, /*transposed=*/true, kOnes, /*groups=*/1);
  }
  return pointwise.call(x, weight_, bias_, kOnes, kOnes, kTwos, kOnes, /*groups=*/1, "none", Scalars(), "");
}

}  // namespace saccade::models
