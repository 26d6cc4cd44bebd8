#include "models/networks/mask_rcnn/mask_head.h"

#include <ATen/Parallel.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <array>

#include "models/device/pinned.h"
#include "models/device/transfer.h"

namespace saccade::models {
namespace {

constexpr auto kUpscaleName = "roi_heads.mask_predictor.conv5_mask";
constexpr auto kLogitsName = "roi_heads.mask_predictor.mask_fcn_logits";
constexpr int64_t kMaskUpscaling = 2;
constexpr int64_t kUpscaledMaskSide = kMaskUpscaling * kMaskSide;

// Regions computed at once: intermediate maps stay in the cache, and few shapes need packed weights.
constexpr int64_t kRegionsAtOnce = 16;
// The same for OnDevice(): limits the intermediate maps, to some 100 MB in float32, and is enough for a GPU.
constexpr int64_t kRegionsAtOnceOnGpu = 128;

// A transposed convolution whose stride equals its kernel computes each position's block separately. It is
// therefore a 1x1 convolution to four times the channels. The weight is [inputs, outputs, 2, 2]; outputs are
// ordered by block row, then block column.
Convolution MakeUpscale(const TensorMap& tensors) {
  RefuseQuantized(tensors.at(std::string(kUpscaleName) + ".weight"));
  const at::Tensor weight = tensors.at(std::string(kUpscaleName) + ".weight").to(at::kFloat);
  const at::Tensor bias = tensors.at(std::string(kUpscaleName) + ".bias").to(at::kDouble);
  const int64_t blocks = kMaskUpscaling * kMaskUpscaling;
  const at::Tensor flat =
      weight.permute({2, 3, 1, 0}).reshape({blocks * weight.size(1), weight.size(0), 1, 1});
  return {flat,
          {at::ones({flat.size(0)}, at::kDouble), bias.repeat({blocks})},
          {.activation = Activation::kRelu, .target = tensors.target}};
}

// Sums in a fixed order that the compiler can vectorise.
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

// Like MaskHead::Draw(), with ATen's operators; `labels` is int64 [K] on the device of `blocks`.
at::Tensor DrawOnGpu(const at::Tensor& blocks, const at::Tensor& weights, const at::Tensor& biases,
                     const at::Tensor& labels) {
  const int64_t count = blocks.size(0);
  const at::Tensor weight = weights.index_select(0, labels).to(blocks.scalar_type());
  const at::Tensor positions = blocks.view({count, -1, weights.size(1)});
  return at::bmm(positions, weight.unsqueeze(2))
      .add(biases.index_select(0, labels).view({count, 1, 1}))
      .view({count, kMaskSide, kMaskSide, kMaskUpscaling, kMaskUpscaling})
      .permute({0, 1, 3, 2, 4})
      .reshape({count, kUpscaledMaskSide, kUpscaledMaskSide});
}

}  // namespace

MaskHead::MaskHead(const TensorMap& tensors)
    : here_(tensors.target.packed()), upscale_(MakeUpscale(tensors)) {
  for (int64_t layer = 0; layer < kMaskConvolutions; ++layer) {
    layers_.push_back(BiasedConvolution(tensors, "roi_heads.mask_head." + std::to_string(layer) + ".0",
                                        {.activation = Activation::kRelu}));
  }
  const at::Tensor weight = tensors.at(std::string(kLogitsName) + ".weight");
  logits_weight_ = Owned(weight.view({weight.size(0), weight.size(1)}), tensors.target);
  logits_bias_ = Owned(tensors.at(std::string(kLogitsName) + ".bias"), tensors.target);
}

at::Tensor MaskHead::operator()(const at::Tensor& regions, const std::vector<int64_t>& labels) const {
  std::vector<at::Tensor> masks;
  for (int64_t first = 0; first < regions.size(0); first += kRegionsAtOnce) {
    const int64_t count = std::min(kRegionsAtOnce, regions.size(0) - first);
    masks.push_back(Some(regions.narrow(0, first, count), labels.data() + first));
  }
  return Fetched(at::cat(masks));
}

at::Tensor MaskHead::OnDevice(const at::Tensor& regions, const at::Tensor& labels) const {
  std::vector<at::Tensor> masks;
  for (int64_t first = 0; first < regions.size(0); first += kRegionsAtOnceOnGpu) {
    const int64_t count = std::min(kRegionsAtOnceOnGpu, regions.size(0) - first);
    masks.push_back(DrawOnGpu(Blocks(regions.narrow(0, first, count)), logits_weight_, logits_bias_,
                              labels.narrow(0, first, count)));
  }
  return at::cat(masks).to(at::kFloat);
}

at::Tensor MaskHead::Some(const at::Tensor& regions, const int64_t* labels) const {
  const at::Tensor blocks = Blocks(regions);
  if (here_) return Draw(blocks.to(at::kFloat), labels);
  const at::Tensor label =
      at::tensor(at::ArrayRef<int64_t>(labels, static_cast<size_t>(regions.size(0))), at::kLong);
  return DrawOnGpu(blocks, logits_weight_, logits_bias_, SmallSent(label, blocks.device()));
}

at::Tensor MaskHead::Blocks(const at::Tensor& regions) const {
  at::Tensor x = regions;
  for (const Convolution& layer : layers_) x = layer(x);
  return upscale_(x).permute({0, 2, 3, 1}).contiguous();
}

at::Tensor MaskHead::Draw(const at::Tensor& blocks, const int64_t* labels) const {
  const int64_t channels = logits_weight_.size(1);
  const at::Tensor masks = at::empty({blocks.size(0), kUpscaledMaskSide, kUpscaledMaskSide}, at::kFloat);
  const float* from = blocks.const_data_ptr<float>();
  const float* weights = logits_weight_.const_data_ptr<float>();
  const float* biases = logits_bias_.const_data_ptr<float>();
  auto* to = masks.mutable_data_ptr<float>();
  const auto draw_rows = [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t label = labels[row / kUpscaledMaskSide];
      const int64_t source_row = row / kMaskUpscaling;
      for (int64_t column = 0; column < kUpscaledMaskSide; ++column) {
        const int64_t position = source_row * kMaskSide + column / kMaskUpscaling;
        const int64_t block = position * kMaskUpscaling * kMaskUpscaling +
                              row % kMaskUpscaling * kMaskUpscaling + column % kMaskUpscaling;
        to[row * kUpscaledMaskSide + column] =
            Dot(from + block * channels, weights + label * channels, channels) + biases[label];
      }
    }
  };
  at::parallel_for(0, blocks.size(0) * kUpscaledMaskSide, kMaskSide, draw_rows);
  return masks;
}

}  // namespace saccade::models
