#include "models/networks/psmnet/features.h"

#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/upsample_bilinear2d.h>

#include <algorithm>
#include <string>

namespace saccade::models {
namespace {

const std::string kPrefix = "feature_extraction.";

// NAME.0 is the convolution and NAME.1 its batch norm.
Convolution Normed(const TensorMap& tensors, const std::string& name, const ConvolutionOptions& options) {
  return NormedConvolution(tensors, name + ".0", name + ".1", options);
}

std::optional<Convolution> Shortcut(const PsmnetBlock& block, const TensorMap& tensors) {
  if (!block.projected) return std::nullopt;
  return Normed(tensors, block.name + ".downsample", {.stride = block.stride});
}

}  // namespace

PsmnetResidual::PsmnetResidual(const PsmnetBlock& block, const TensorMap& tensors)
    : first_(Normed(tensors, block.name + ".conv1.0",
                    {.stride = block.stride, .dilation = block.dilation, .activation = Activation::kRelu})),
      second_(Normed(tensors, block.name + ".conv2", {.dilation = block.dilation})),
      shortcut_(Shortcut(block, tensors)) {}

at::Tensor PsmnetResidual::operator()(at::Tensor x) const {
  const at::Tensor middle = first_(x);
  if (shortcut_) x = (*shortcut_)(x);
  return second_.AddedTo(std::move(x), middle);
}

PsmnetFeatures::PsmnetFeatures(const PsmnetOptions& options, const TensorMap& tensors)
    : align_corners_(options.align_corners) {
  constexpr Activation kRelu = Activation::kRelu;
  for (int layer = 0; layer < 3; ++layer) {
    first_.push_back(Normed(tensors, kPrefix + "firstconv." + std::to_string(2 * layer),
                            {.stride = layer == 0 ? 2 : 1, .activation = kRelu}));
  }
  for (int stage = 0; stage < kPsmnetStages; ++stage) {
    stages_.emplace_back();
    for (const PsmnetBlock& block : PsmnetBlocks(options, stage)) stages_.back().emplace_back(block, tensors);
  }
  for (size_t branch = 1; branch <= kPyramidPools.size(); ++branch) {
    branches_.push_back(
        Normed(tensors, kPrefix + "branch" + std::to_string(branch) + ".1", {.activation = kRelu}));
  }
  last_.push_back(Normed(tensors, kPrefix + "lastconv.0", {.activation = kRelu}));
  last_.push_back(BiasedConvolution(tensors, kPrefix + "lastconv.2", {}));
}

at::Tensor PsmnetFeatures::Pooled(const at::Tensor& map, size_t branch) const {
  const int64_t pool = kPyramidPools.at(branch);
  const std::vector<int64_t> window = {std::min(pool, map.size(2)), std::min(pool, map.size(3))};
  const at::Tensor means = branches_[branch](at::avg_pool2d(map, window, window));
  return at::upsample_bilinear2d(means, map.sizes().slice(2), align_corners_);
}

at::Tensor PsmnetFeatures::operator()(at::Tensor pictures) const {
  at::Tensor x = std::move(pictures);
  for (const Convolution& layer : first_) x = layer(x);
  // Stage 2 starts with a projected shortcut, so it does not overwrite stage 1's result.
  at::Tensor fine;
  for (size_t stage = 0; stage < stages_.size(); ++stage) {
    for (const PsmnetResidual& block : stages_[stage]) x = block(std::move(x));
    if (stage == 1) fine = x;
  }
  std::vector<at::Tensor> parts = {fine, x};
  for (size_t branch = kPyramidPools.size(); branch-- > 0;) parts.push_back(Pooled(x, branch));
  x = at::cat(parts, 1);
  for (const Convolution& layer : last_) x = layer(x);
  return x;
}

}  // namespace saccade::models
