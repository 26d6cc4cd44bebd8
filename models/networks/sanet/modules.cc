#include "models/networks/sanet/modules.h"

#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/cat.h>

#include "kernels/sao/sao.h"
#include "models/layers/device.h"

namespace saccade::models {
namespace {

ConvolutionOptions Depthwise(const Block& block) {
  return {.stride = block.stride, .groups = block.filtered(), .activation = Activation::kRelu6};
}

}  // namespace

Convolution MakeConvolution(const TensorMap& tensors, const std::string& prefix,
                            const ConvolutionOptions& options) {
  return NormedConvolution(tensors, prefix + "conv", prefix + "bn", options);
}

SiameseAttention::SiameseAttention(const TensorMap& tensors, const std::string& prefix, bool global_term,
                                   bool skip)
    : global_term_(global_term), skip_(skip) {
  value_weight_ = Owned(tensors.at(prefix + "value.weight"), tensors.target);
  if (const auto w = tensors.find(prefix + "w"); w != tensors.end()) w_ = Owned(w->second, tensors.target);
  const Affine affine = FoldBatchNorm(tensors, prefix + "bn.");
  scale_ = Owned(affine.scale, tensors.target);
  shift_ = Owned(affine.shift, tensors.target);
}

at::Tensor SiameseAttention::operator()(const at::Tensor& x) const {
  return kernels::sao_module(x, value_weight_, w_, scale_, shift_, kSanetHeads, global_term_, skip_,
                             std::nullopt);
}

SanetModule::SanetModule(const Block& block, bool global_term, const TensorMap& tensors)
    : block_(block),
      depthwise_(MakeConvolution(tensors, block.name + ".depthwise.", Depthwise(block))),
      project_(MakeConvolution(tensors, block.name + ".project.", {})) {
  if (block.expanded() > 0) {
    expand_ = MakeConvolution(tensors, block.name + ".expand.", {.activation = Activation::kRelu6});
  }
  if (block.module == Module::kAttention) {
    attention_.emplace(tensors, block.name + ".attention.", global_term, block.stride == 1);
  }
}

at::Tensor SanetModule::Attend(const at::Tensor& x) const {
  const at::Tensor attended = (*attention_)(x);
  if (block_.stride == 1) return attended;
  return at::avg_pool2d(attended, block_.stride, block_.stride, 0, /*ceil_mode=*/true,
                        /*count_include_pad=*/false);
}

at::Tensor SanetModule::operator()(const at::Tensor& x) const {
  at::Tensor features = expand_ ? (*expand_)(x) : x;
  if (attention_) {
    features = at::cat({depthwise_(features), Attend(x)}, 1);
  } else {
    features = depthwise_(expand_ ? at::cat({features, x}, 1) : features);
  }
  return block_.skip() ? project_.WithSum(features, x) : project_(features);
}

}  // namespace saccade::models
