#include "models/networks/sanet/layers.h"

namespace saccade::models {
namespace {

using Kind = LayerSpec::Kind;

void AddBlock(const Block& block, bool learned, std::vector<LayerSpec>& layers) {
  const int64_t after = Strided(block.size, block.stride);
  if (block.expanded() > 0) {
    layers.push_back({.name = block.name + ".expand",
                      .inputs = block.inputs,
                      .outputs = block.expanded(),
                      .size = block.size});
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
                      .learned = learned});
  }
  layers.push_back({.name = block.name + ".project",
                    .inputs = block.expansion * block.inputs,
                    .outputs = block.outputs,
                    .size = after});
}

std::string Operation(const LayerSpec& layer) {
  const std::string side = std::to_string(layer.size);
  const std::string kernel = std::to_string(layer.kernel);
  std::string text;
  if (layer.kind == Kind::kAttention) {
    text = "siamese attention, " + std::to_string(layer.outputs) + " channels";
  } else if (layer.kind == Kind::kClassifier) {
    return "linear, " + std::to_string(layer.inputs) + " to " + std::to_string(layer.outputs);
  } else if (layer.groups > 1) {
    text = kernel + "x" + kernel + " depthwise, " + std::to_string(layer.outputs) + " channels";
  } else {
    text = kernel + "x" + kernel + " convolution, " + std::to_string(layer.inputs) + " to " +
           std::to_string(layer.outputs);
  }
  if (layer.stride > 1) text += ", stride " + std::to_string(layer.stride);
  return text + ", " + side + "x" + side;
}

LayerCount CountLayer(const LayerSpec& layer) {
  const int64_t positions = layer.size * layer.size;
  const int64_t weights = layer.kernel * layer.kernel * (layer.inputs / layer.groups) * layer.outputs;
  LayerCount count{layer.name, Operation(layer),   layer.kind == Kind::kAttention, weights,
                   0,          positions * weights};
  if (layer.kind == Kind::kAttention) {
    if (layer.learned) count.parameters += layer.outputs;
    count.madds += 4 * positions * layer.outputs;
  }
  // A batch norm's weight and bias, or the classifier's bias.
  count.other_parameters = layer.kind == Kind::kClassifier ? layer.outputs : 2 * layer.outputs;
  return count;
}

}  // namespace

std::vector<LayerSpec> SanetLayers(const SanetPlan& plan) {
  std::vector<LayerSpec> layers;
  layers.push_back({.name = "stem",
                    .inputs = 3,
                    .outputs = plan.stem,
                    .kernel = 3,
                    .stride = 2,
                    .size = Strided(plan.options.input_size, 2)});
  for (const Block& block : plan.blocks) AddBlock(block, plan.options.learned, layers);
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

Counts CountSanet(const SanetPlan& plan) {
  Counts counts;
  for (const LayerSpec& layer : SanetLayers(plan)) counts.layers.push_back(CountLayer(layer));
  return counts;
}

}  // namespace saccade::models
