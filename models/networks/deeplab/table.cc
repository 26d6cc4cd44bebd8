#include "models/networks/deeplab/table.h"

#include <cmath>
#include <string>
#include <vector>

namespace saccade::models {
namespace {

// Multiply-adds of the operator and its three transforms.
int64_t AttentionMadds(const DeepLabOptions& options, Size map) {
  const int64_t channels = options.head_channels;
  const int64_t positions = map.height * map.width;
  const int64_t averages = map.height + map.width;
  const auto attend = [&](int64_t queries, int64_t keys) { return 2 * queries * keys * channels; };
  const auto transform = [&](int64_t vectors) { return vectors * channels * channels; };
  switch (options.head) {
    case DeepLabHead::kKao:
      if (options.kao == "qkv") return attend(averages, averages) + 3 * transform(averages);
      return attend(positions, averages) + transform(positions) + 2 * transform(averages);
    case DeepLabHead::kAttentionPool: {
      const int64_t pooled = (map.height + 1) / 2 * ((map.width + 1) / 2);
      return attend(positions, pooled) + transform(positions) + 2 * transform(pooled);
    }
    default:
      return attend(positions, positions) + 3 * transform(positions);
  }
}

std::string AttentionText(const DeepLabOptions& options, Size map) {
  std::string text = "regular attention";
  if (options.head == DeepLabHead::kKao)
    text = options.kao == "qkv" ? "Kronecker attention (QKV)" : "Kronecker attention (KV)";
  if (options.head == DeepLabHead::kAttentionPool) text += ", keys pooled 2x2";
  text += ", " + std::to_string(options.head_channels) + " channels";
  if (options.heads > 1) text += ", " + std::to_string(options.heads) + " heads";
  return text + ", " + ExtentText({map.height, map.width});
}

void RecordAttention(const DeepLabOptions& options, Size map, Ledger& ledger) {
  const std::string name = "layer5.attention";
  const int64_t channels = options.head_channels;
  std::vector<TensorSpec> tensors;
  for (const char* part : {".query", ".key", ".value"})
    tensors.push_back({name + part + ".weight", {channels, channels, 1, 1}});
  for (const char* part : {".query", ".value"}) tensors.push_back({name + part + ".bias", {channels}});
  for (const char* part : {"weight", "bias", "running_mean", "running_var"})
    tensors.push_back({name + ".coefficients." + part, {options.heads}});
  ledger.Add({.name = name,
              .operation = AttentionText(options, map),
              .attention = true,
              .parameters = 3 * channels * channels,
              .other_parameters = 2 * channels + 2 * options.heads,
              .madds = AttentionMadds(options, map)},
             tensors);
}

void RecordHead(const DeepLabOptions& options, int64_t inputs, Size map, Ledger& ledger) {
  const std::vector<int64_t> output = {map.height, map.width};
  if (options.head == DeepLabHead::kAspp) {
    int index = 0;
    for (const int64_t dilation : kAsppDilations) {
      ledger.Convolution("layer5.conv2d_list." + std::to_string(index++),
                         {.inputs = inputs,
                          .outputs = options.classes,
                          .kernel = {3, 3},
                          .dilation = dilation,
                          .bias = true},
                         output);
    }
    return;
  }
  ledger.Convolution("layer5.reduce.conv", {.inputs = inputs, .outputs = options.head_channels}, output);
  ledger.BatchNorm("layer5.reduce.bn", options.head_channels);
  RecordAttention(options, map, ledger);
  ledger.Convolution("layer5.classifier",
                     {.inputs = options.head_channels, .outputs = options.classes, .bias = true}, output);
}

}  // namespace

ResnetTable DeepLabBackbone(const DeepLabOptions& options) {
  return {.blocks = options.blocks,
          .width = 8 * std::lround(8 * options.width),
          .strides = {1, 2, 1, 1},
          .dilations = {1, 1, 2, 4},
          .stride_on_first = true,
          .pool_ceil = true,
          .epsilon = options.epsilon};
}

void RecordDeepLab(const DeepLabOptions& options, Size size, Ledger& ledger) {
  const ResnetTable backbone = DeepLabBackbone(options);
  Size map = RecordStem(backbone, "", size, ledger);
  for (int stage = 0; stage < 4; ++stage) map = RecordStage(backbone, stage, "", map, ledger);
  RecordHead(options, backbone.Channels(3), map, ledger);
}

}  // namespace saccade::models
