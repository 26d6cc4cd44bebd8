#include "models/networks/mobile/layers.h"

#include <algorithm>

#include "models/layers/explicit_maps.h"

namespace saccade::models {
namespace {

using Kind = LayerSpec::Kind;
using Attention = MobileAttention;

void AddBlock(const Block& block, const MobileOptions& options, std::vector<LayerSpec>& layers) {
  const int64_t after = Strided(block.size, block.stride);
  if (block.expanded() > 0) {
    layers.push_back({.name = block.name + ".expand",
                      .inputs = block.inputs,
                      .outputs = block.expanded(),
                      .size = block.size,
                      .attended = block.attended,
                      .radius = block.attended > 0 && HasRadius(options.map)});
  }
  layers.push_back({.name = block.name + ".depthwise",
                    .inputs = block.filtered(),
                    .outputs = block.filtered(),
                    .kernel = 3,
                    .stride = block.stride,
                    .groups = block.filtered(),
                    .size = after});
  if (block.module == Module::kAttention) {
    layers.push_back({.name = block.name + ".attention",
                      .kind = Kind::kAttention,
                      .inputs = block.inputs,
                      .outputs = block.inputs,
                      .size = block.size,
                      .attention = options.attention,
                      .heads = options.heads,
                      .learned = options.learned && options.attention == Attention::kSiamese,
                      .squeezed = options.attention == Attention::kSqueeze
                                      ? std::max<int64_t>(1, block.inputs / options.reduction)
                                      : 0});
  }
  layers.push_back({.name = block.name + ".project",
                    .inputs = block.expansion * block.inputs,
                    .outputs = block.outputs,
                    .size = after});
}

const char* NameOf(Attention attention) {
  switch (attention) {
    case Attention::kNone:
      return "no attention";
    case Attention::kSiamese:
      return "siamese attention";
    case Attention::kSoftmax:
      return "attention";
    case Attention::kPool:
      return "attention to pooled keys and values";
    case Attention::kOverN:
      return "attention over N";
    case Attention::kKroneckerKv:
      return "Kronecker attention (KV)";
    case Attention::kKroneckerQkv:
      return "Kronecker attention (QKV)";
    case Attention::kSqueeze:
      return "squeeze-and-excite";
  }
  return "";
}

// Multiply-adds of the operator and its value transform, on a square map with this side.
int64_t AttentionMadds(Attention attention, int64_t side, int64_t channels, int64_t squeezed) {
  const int64_t positions = side * side;
  const int64_t pooled = (side + 1) / 2 * ((side + 1) / 2);
  const int64_t transform = positions * channels * channels;
  switch (attention) {
    case Attention::kNone:
      return 0;
    case Attention::kSiamese:
      return 4 * positions * channels + transform;
    case Attention::kSoftmax:
      return 2 * positions * positions * channels + transform;
    case Attention::kPool:
      return 2 * positions * pooled * channels + pooled * channels * channels;
    case Attention::kOverN:
      return 2 * positions * channels * channels + transform;
    case Attention::kKroneckerKv:
      return 2 * positions * 2 * side * channels + 2 * side * channels * channels;
    case Attention::kKroneckerQkv:
      return 2 * 4 * positions * channels + 2 * side * channels * channels;
    case Attention::kSqueeze:
      return 2 * positions * channels + 2 * channels * squeezed;
  }
  return 0;
}

std::string Operation(const LayerSpec& layer) {
  const std::string side = std::to_string(layer.size);
  const std::string kernel = std::to_string(layer.kernel);
  std::string text;
  if (layer.kind == Kind::kAttention) {
    text = NameOf(layer.attention);
    text += ", " + std::to_string(layer.outputs) + " channels";
  } else if (layer.kind == Kind::kClassifier) {
    return "linear, " + std::to_string(layer.inputs) + " to " + std::to_string(layer.outputs);
  } else if (layer.groups > 1) {
    text = kernel + "x" + kernel + " depthwise, " + std::to_string(layer.outputs) + " channels";
  } else {
    text = kernel + "x" + kernel + " convolution, " + std::to_string(layer.inputs) + " to " +
           std::to_string(layer.outputs);
  }
  if (layer.attended > 0) text += ", of which " + std::to_string(layer.attended) + " by explicit attention";
  if (layer.stride > 1) text += ", stride " + std::to_string(layer.stride);
  return text + ", " + side + "x" + side;
}

LayerCount CountLayer(const LayerSpec& layer) {
  const int64_t positions = layer.size * layer.size;
  int64_t weights = layer.kernel * layer.kernel * (layer.inputs / layer.groups) * layer.outputs;
  // Explicit attention has a value transform of the same inputs (counted above) and an output transform. The
  // map itself costs nothing, as its paper counts.
  weights += layer.attended * layer.attended;
  LayerCount count{layer.name, Operation(layer),   layer.kind == Kind::kAttention, weights,
                   0,          positions * weights};
  if (layer.radius) count.parameters += 1;
  if (layer.kind == Kind::kAttention) {
    if (layer.squeezed > 0) count.parameters = 2 * layer.outputs * layer.squeezed;
    if (layer.learned) count.parameters += layer.outputs;
    count.madds = AttentionMadds(layer.attention, layer.size, layer.outputs, layer.squeezed);
  }
  // The batch norm's weight and bias, or the classifier's bias.
  count.other_parameters = layer.kind == Kind::kClassifier ? layer.outputs : 2 * NormedChannels(layer);
  return count;
}

}  // namespace

bool NormsCoefficients(MobileAttention attention) {
  return attention != Attention::kSiamese && attention != Attention::kOverN &&
         attention != Attention::kSqueeze;
}

int64_t NormedChannels(const LayerSpec& layer) {
  if (layer.squeezed > 0) return 0;
  const bool coefficients = layer.kind == Kind::kAttention && NormsCoefficients(layer.attention);
  return coefficients ? layer.heads : layer.outputs;
}

std::vector<LayerSpec> MobileLayers(const MobilePlan& plan) {
  std::vector<LayerSpec> layers;
  layers.push_back({.name = "stem",
                    .inputs = 3,
                    .outputs = plan.stem,
                    .kernel = 3,
                    .stride = 2,
                    .size = Strided(plan.options.input_size, 2)});
  for (const Block& block : plan.blocks) AddBlock(block, plan.options, layers);
  const Block& last = plan.blocks.back();
  layers.push_back({.name = "head",
                    .inputs = last.outputs,
                    .outputs = plan.head,
                    .size = Strided(last.size, last.stride)});
  layers.push_back({.name = "classifier",
                    .kind = Kind::kClassifier,
                    .inputs = plan.head,
                    .outputs = plan.options.classes});
  return layers;
}

Counts CountMobile(const MobilePlan& plan) {
  Counts counts;
  for (const LayerSpec& layer : MobileLayers(plan)) counts.layers.push_back(CountLayer(layer));
  return counts;
}

}  // namespace saccade::models
