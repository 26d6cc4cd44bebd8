#include "models/networks/mobile/modules.h"

#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/cat.h>

#include "models/device/transfer.h"

namespace saccade::models {
namespace {

// Whether convolutions alone read what the layers within the module compute.
bool IsPlain(const Block& block) { return block.module == Module::kPlain && block.attended == 0; }

ConvolutionOptions Depthwise(const Block& block) {
  return {.stride = block.stride,
          .groups = block.filtered(),
          .activation = Activation::kRelu6,
          .stays_int8 = block.module == Module::kPlain};
}

}  // namespace

Convolution MakeConvolution(const TensorMap& tensors, const std::string& prefix,
                            const ConvolutionOptions& options) {
  return NormedConvolution(tensors, prefix + "conv", prefix + "bn", options);
}

MobileModule::MobileModule(const Block& block, const MobileOptions& options, const TensorMap& tensors)
    : block_(block),
      type_(TypeOf(tensors.target)),
      depthwise_(MakeConvolution(tensors, block.name + ".depthwise.", Depthwise(block))),
      project_(MakeConvolution(tensors, block.name + ".project.", {.stays_int8 = true})) {
  const std::string expand = ExpandName(block);
  if (block.attended > 0) {
    const Affine affine = FoldBatchNorm(tensors, expand + ".bn.");
    const int64_t convolved = block.expanded() - block.attended;
    expand_.emplace(tensors.at(expand + ".conv.weight"), PartOf(affine, 0, convolved),
                    Placed(tensors, expand + ".conv", {.activation = Activation::kRelu6}));
    explicit_.emplace(tensors, expand, PartOf(affine, convolved, block.attended), options.map);
  } else if (block.expanded() > 0) {
    expand_ = MakeConvolution(tensors, expand + ".",
                              {.activation = Activation::kRelu6, .stays_int8 = IsPlain(block)});
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

at::Tensor MobileModule::operator()(const at::Tensor& input) const {
  const at::Tensor x = IsPlain(block_) ? input : Floats(input, type_);
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
  return block_.skip() ? project_.WithSum(features, input) : project_(features);
}

}  // namespace saccade::models
