#include "models/networks/mask_rcnn/mask_head.h"

#include <ATen/Parallel.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <array>

namespace saccade::models {
namespace {

constexpr auto kUpscale = "roi_heads.mask_predictor.conv5_mask";
constexpr auto kLogits = "roi_heads.mask_predictor.mask_fcn_logits";
constexpr int64_t kFactor = 2;
constexpr int64_t kDrawnSide = kFactor * kMaskSide;

// Regions at once: what they become on the way stays in the cache, and there are few shapes to prepare for.
constexpr int64_t kRegionsAtOnce = 16;

// A transposed convolution whose stride is its kernel draws each position's block by itself: it is a 1x1
// convolution to as many times the channels. The weight is [inputs, outputs, 2, 2]; outputs come block row by
// block row.
Convolution MakeUpscale(const TensorMap& tensors) {
  const at::Tensor weight = tensors.at(std::string(kUpscale) + ".weight").to(at::kFloat);
  const at::Tensor bias = tensors.at(std::string(kUpscale) + ".bias").to(at::kDouble);
  const int64_t blocks = kFactor * kFactor;
  const at::Tensor flat =
      weight.permute({2, 3, 1, 0}).reshape({blocks * weight.size(1), weight.size(0), 1, 1});
  return {flat,
          {at::ones({flat.size(0)}, at::kDouble), bias.repeat({blocks})},
          {.activation = Activation::kRelu}};
}

// Sums in a fixed order that vectorises.
float Dot(const float* a, const float* b, int64_t count) {
  constexpr int64_t kLanes = 16;
  std::array<float, kLanes> sums{};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane)
      sums[static_cast<size_t>(lane)] += a[i + lane] * b[i + lane];
  }
  for (int64_t lane = 0; i < count; ++i, ++lane) sums[static_cast<size_t>(lane)] += a[i] * b[i];
  float sum = 0;
  for (const float part : sums) sum += part;
  return sum;
}

}  // namespace

MaskHead::MaskHead(const TensorMap& tensors) : upscale_(MakeUpscale(tensors)) {
  for (int64_t layer = 0; layer < kMaskLayers; ++layer) {
    layers_.push_back(BiasedConvolution(tensors, "roi_heads.mask_head." + std::to_string(layer) + ".0",
                                        {.activation = Activation::kRelu}));
  }
  const at::Tensor weight = tensors.at(std::string(kLogits) + ".weight");
  logits_weight_ =
      weight.view({weight.size(0), weight.size(1)}).to(at::kFloat).clone(at::MemoryFormat::Contiguous);
  const at::Tensor bias = tensors.at(std::string(kLogits) + ".bias").to(at::kFloat).contiguous();
  logits_bias_.assign(bias.const_data_ptr<float>(), bias.const_data_ptr<float>() + bias.numel());
}

at::Tensor MaskHead::operator()(const at::Tensor& regions, const std::vector<int64_t>& labels) const {
  std::vector<at::Tensor> masks;
  for (int64_t first = 0; first < regions.size(0); first += kRegionsAtOnce) {
    const int64_t count = std::min(kRegionsAtOnce, regions.size(0) - first);
    masks.push_back(Some(regions.narrow(0, first, count), labels.data() + first));
  }
  return at::cat(masks);
}

at::Tensor MaskHead::Some(const at::Tensor& regions, const int64_t* labels) const {
  at::Tensor x = regions;
  for (const Convolution& layer : layers_) x = layer(x);
  const at::Tensor blocks = upscale_(x).permute({0, 2, 3, 1}).contiguous();  // [K, 14, 14, 2 * 2 * C]
  const int64_t channels = logits_weight_.size(1);
  const at::Tensor masks = at::empty({regions.size(0), kDrawnSide, kDrawnSide}, at::kFloat);
  const float* from = blocks.const_data_ptr<float>();
  const float* weights = logits_weight_.const_data_ptr<float>();
  auto* to = masks.mutable_data_ptr<float>();
  const auto draw_rows = [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t label = labels[row / kDrawnSide];
      const int64_t source_row = row / kFactor;
      for (int64_t column = 0; column < kDrawnSide; ++column) {
        const int64_t position = source_row * kMaskSide + column / kFactor;
        const int64_t block = position * kFactor * kFactor + row % kFactor * kFactor + column % kFactor;
        to[row * kDrawnSide + column] = Dot(from + block * channels, weights + label * channels, channels) +
                                        logits_bias_[static_cast<size_t>(label)];
      }
    }
  };
  at::parallel_for(0, regions.size(0) * kDrawnSide, kMaskSide, draw_rows);
  return masks;
}

}  // namespace saccade::models
