#include "models/networks/mobile/modules.h"

#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/cat.h>

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

MobileModule::MobileModule(const Block& block, const MobileOptions& options, const TensorMap& tensors)
    : block_(block),
      depthwise_(MakeConvolution(tensors, block.name + ".depthwise.", Depthwise(block))),
      project_(MakeConvolution(tensors, block.name + ".project.", {})) {
  const std::string expand = ExpandName(block);
  if (block.attended > 0) {
    const Affine affine = FoldBatchNorm(tensors, expand + ".bn.");
    const int64_t convolved = block.expanded() - block.attended;
    expand_.emplace(tensors.at(expand + ".conv.weight"), PartOf(affine, 0, convolved),
                    ConvolutionOptions{.activation = Activation::kRelu6, .target = tensors.target});
    explicit_.emplace(tensors, expand, PartOf(affine, convolved, block.attended), options.map);
  } else if (block.expanded() > 0) {
    expand_ = MakeConvolution(tensors, expand + ".", {.activation = Activation::kRelu6});
  }
  if (block.module == Module::kAttention) {
    attention_.emplace(options, tensors, AttentionName(block), options.attention_skip && block.stride == 1);
  }
}

at::Tensor MobileModule::Expand(const at::Tensor& x) const {
  if (!expand_) return x;
  if (!explicit_) return (*expand_)(x);
  return at::cat({(*expand_)(x), (*explicit_)(x).clamp_(0, 6)}, 1);
}

at::Tensor MobileModule::Attend(const at::Tensor& x) const {
  const at::Tensor attended = (*attention_)(x);
  if (block_.stride == 1) return attended;
  return at::avg_pool2d(attended, block_.stride, block_.stride, 0, /*ceil_mode=*/true,
                        /*count_include_pad=*/false);
}

at::Tensor MobileModule::operator()(const at::Tensor& x) const {
  at::Tensor features = Expand(x);
  switch (block_.module) {
    case Module::kAttention:
      features = at::cat({depthwise_(features), Attend(x)}, 1);
      break;
    case Module::kBase:
      features = depthwise_(expand_ ? at::cat({features, x}, 1) : features);
      break;
    case Module::kPlain:
      features = depthwise_(features);
      break;
  }
  return block_.skip() ? project_.WithSum(features, x) : project_(features);
}

}  // namespace saccade::models
