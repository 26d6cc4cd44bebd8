#include "models/networks/mobile/attention_path.h"

#include <ATen/ops/diag.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "kernels/attention/attention.h"
#include "kernels/kao/kao.h"
#include "kernels/sao/sao.h"
#include "models/device/transfer.h"
#include "models/layers/attention_maps.h"
#include "models/layers/batch_norm.h"
#include "models/layers/position_maps.h"
#include "models/networks/mobile/layers.h"

namespace saccade::models {
namespace {

// A linear layer without a bias, as a convolution of the mean position.
Convolution WithoutBias(const TensorMap& tensors, const std::string& name, Activation activation) {
  const at::Tensor weight = tensors.at(name + ".weight");
  return {weight.unsqueeze(2).unsqueeze(3), IdentityAffine(weight.size(0)),
          Placed(tensors, name, {.activation = activation})};
}

}  // namespace

AttentionPath::AttentionPath(const MobileOptions& options, const TensorMap& tensors, const std::string& name,
                             bool skip)
    : name_(name), options_(options), skip_(skip) {
  if (options.attention == MobileAttention::kSqueeze) {
    squeeze_.emplace(WithoutBias(tensors, name + ".squeeze", Activation::kRelu));
    excite_.emplace(WithoutBias(tensors, name + ".excite", Activation::kNone));
    return;
  }
  value_weight_ = Owned(tensors.at(name + ".value.weight"), tensors.target);
  if (const auto w = tensors.find(name + ".w"); w != tensors.end()) w_ = Owned(w->second, tensors.target);
  if (!NormsCoefficients(options.attention)) {
    const Affine affine = FoldBatchNorm(tensors, name + ".bn.");
    scale_ = Owned(affine.scale, tensors.target);
    shift_ = Owned(affine.shift, tensors.target);
    return;
  }
  // The batch norm's shift is the same for all coefficients of one softmax and cancels, so only its scale is
  // used.
  const at::Tensor scale = FoldBatchNorm(tensors, name + ".coefficients.").scale;
  const bool regular =
      options.attention == MobileAttention::kSoftmax || options.attention == MobileAttention::kPool;
  if (!regular) {
    coefficient_scale_ = Owned(scale, tensors.target);
    return;
  }
  const at::Tensor per_channel = scale.repeat_interleave(value_weight_.size(0) / scale.size(0));
  scaled_identity_ = Owned(at::diag(per_channel), tensors.target);
}

at::Tensor AttentionPath::Regular(const at::Tensor& x, const char* kind) const {
  ProbeDotProducts(name_, x, {.kind = kind, .query_weight = scaled_identity_, .heads = options_.heads});
  kernels::AttentionWeights weights;
  weights.query_weight = scaled_identity_;
  weights.value_weight = value_weight_;
  weights.scale = scale_;
  weights.shift = shift_;
  return kernels::attention_module(x, kind, weights, options_.heads, 1.0, skip_);
}

at::Tensor AttentionPath::Kronecker(const at::Tensor& x, const char* kind) const {
  ProbeKronecker(name_, x, {.kind = kind, .coefficient_scale = coefficient_scale_, .heads = options_.heads});
  return kernels::kao_module(x, kind,
                             {.value_weight = value_weight_, .coefficient_scale = coefficient_scale_},
                             options_.heads, skip_);
}

at::Tensor AttentionPath::Squeezed(const at::Tensor& x) const {
  return x * (*excite_)((*squeeze_)(x.mean({2, 3}, /*keepdim=*/true))).sigmoid();
}

at::Tensor AttentionPath::operator()(const at::Tensor& x) const {
  switch (options_.attention) {
    case MobileAttention::kNone:
      break;
    case MobileAttention::kSiamese:
      ProbeSiamese(name_, x, w_, options_.heads);
      return kernels::sao_module(x, {value_weight_, w_, *scale_, *shift_}, options_.heads,
                                 options_.global_term, skip_);
    case MobileAttention::kSoftmax:
      return Regular(x, "softmax");
    case MobileAttention::kPool:
      return Regular(x, "pool");
    case MobileAttention::kOverN:
      return Regular(x, "1n");
    case MobileAttention::kKroneckerKv:
      return Kronecker(x, "kv");
    case MobileAttention::kKroneckerQkv:
      return Kronecker(x, "qkv");
    case MobileAttention::kSqueeze:
      return Squeezed(x);
  }
  TORCH_INTERNAL_ASSERT(false, "an attention module without an attention kind");
}

}  // namespace saccade::models
