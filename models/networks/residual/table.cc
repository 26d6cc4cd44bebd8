#include "models/networks/residual/table.h"

#include <string_view>

#include "models/api/error.h"
#include "models/layers/explicit_maps.h"
#include "models/networks/option_reader.h"
#include "models/networks/width.h"

namespace saccade::models {
namespace {

// Fits the published parameter counts: about a tenth in bottlenecks, a quarter in basic blocks.
int64_t Attended(const ResidualOptions& options, int group) {
  constexpr int64_t kBottleneckChannels[] = {8, 16, 24, 56};
  return options.basic ? Scaled(64 << group, options.width) / 4
                       : Scaled(kBottleneckChannels[group], options.width);
}

SpatialLayer MakeSpatial(const ResidualOptions& options, int group, SpatialLayer layer) {
  if (options.attention == Spatial::kConvolution || group + 1 < options.first_group) return layer;
  layer.kind = options.attention;
  if (layer.kind != Spatial::kExpAtt) return layer;
  layer.attended = Attended(options, group);
  if (layer.attended % MapsOf(options) == 0) return layer;
  throw LoadError(
      "option 'width' is " + NumberText(options.width) + ", which gives " + layer.name + " " +
      std::to_string(layer.attended) + " channels of attention; with shared_map false " +
      std::to_string(kExpAttHeads) +
      " heads have to divide them. Expected a width for which they do, such as a multiple of 0.5, or "
      "shared_map true");
}

std::vector<int64_t> Square(int64_t side) { return {side, side}; }

void RecordExpAtt(const SpatialLayer& layer, const ResidualOptions& options, Ledger& ledger) {
  ledger.Convolution(layer.name + ".conv",
                     {.inputs = layer.inputs,
                      .outputs = layer.outputs - layer.attended,
                      .kernel = {3, 3},
                      .stride = layer.stride},
                     Square(layer.side_after()));
  const int64_t positions = layer.side * layer.side;
  const int64_t weights = layer.attended * (layer.inputs + layer.attended);
  std::vector<TensorSpec> tensors = {{layer.name + ".value.weight", {layer.attended, layer.inputs, 1, 1}},
                                     {layer.name + ".out.weight", {layer.attended, layer.attended, 1, 1}}};
  const bool radius = HasRadius(options.map);
  std::vector<int64_t> radii;
  if (!options.shared_map) radii.push_back(kExpAttHeads);
  if (radius) tensors.push_back({RadiusName(layer), radii});
  std::string operation = "explicitly modelled attention, " + std::to_string(layer.inputs);
  operation += " to " + std::to_string(layer.attended) + ", " + ExtentText(Square(layer.side));
  ledger.Add({.name = layer.name,
              .operation = operation,
              .attention = true,
              .parameters = weights + (radius ? MapsOf(options) : 0),
              .madds = positions * weights},
             tensors);
}

void RecordGsa(const SpatialLayer& layer, const ResidualOptions& options, Ledger& ledger) {
  const int64_t channels = layer.inputs;
  const int64_t positions = layer.side * layer.side;
  const bool content = options.content != "none";
  const std::vector<int64_t> transform = {channels, channels, 1, 1};
  std::vector<TensorSpec> tensors = {{layer.name + ".query.weight", transform}};
  if (content) tensors.push_back({layer.name + ".key.weight", transform});
  tensors.push_back({layer.name + ".value.weight", transform});
  const std::vector<int64_t> embedding = {layer.offsets(), channels / options.heads};
  if (AttendsColumns(options)) tensors.push_back({layer.name + ".column_embedding", embedding});
  if (AttendsRows(options)) tensors.push_back({layer.name + ".row_embedding", embedding});
  const int64_t axes = (AttendsColumns(options) ? 1 : 0) + (AttendsRows(options) ? 1 : 0);
  int64_t parameters = axes * layer.offsets() * (channels / options.heads);
  int64_t madds = axes * 2 * positions * layer.side * channels;  // q r and their sums of values
  const int64_t transforms = content ? 3 : 2;
  parameters += transforms * channels * channels;
  madds += transforms * positions * channels * channels;
  if (options.content == "global") madds += 2 * positions * channels * channels / options.heads;
  if (options.content == "axial") madds += 2 * positions * layer.side * channels;  // q k, along both axes
  std::string operation = "global self-attention, " + std::to_string(channels) + " channels, ";
  operation += ExtentText(Square(layer.side));
  ledger.Add({.name = layer.name,
              .operation = operation,
              .attention = true,
              .parameters = parameters,
              .madds = madds},
             tensors);
  if (options.transform_norms) {
    for (const char* part : {".query_norm", ".key_norm", ".value_norm"}) {
      if (content || part != std::string_view(".key_norm")) ledger.BatchNorm(layer.name + part, channels);
    }
  }
  if (axes == 2) ledger.BatchNorm(layer.name + ".middle", channels);
}

void RecordSpatial(const SpatialLayer& layer, const ResidualOptions& options, Ledger& ledger) {
  switch (layer.kind) {
    case Spatial::kConvolution:
      ledger.Convolution(
          layer.name,
          {.inputs = layer.inputs, .outputs = layer.outputs, .kernel = {3, 3}, .stride = layer.stride},
          Square(layer.side_after()));
      break;
    case Spatial::kExpAtt:
      RecordExpAtt(layer, options, ledger);
      break;
    case Spatial::kGsa:
      RecordGsa(layer, options, ledger);
      break;
  }
  ledger.BatchNorm(layer.norm, layer.outputs);
}

void RecordPoint(const std::string& convolution, const std::string& norm, const ConvolutionShape& shape,
                 int64_t side, Ledger& ledger) {
  ledger.Convolution(convolution, shape, Square(side));
  ledger.BatchNorm(norm, shape.outputs);
}

void RecordBlock(const ResidualBlock& block, const ResidualOptions& options, Ledger& ledger) {
  const int64_t before = block.spatial.front().side;
  const int64_t after = block.spatial.back().side_after();
  if (!block.basic)
    RecordPoint(block.name + ".conv1", block.name + ".bn1", {.inputs = block.inputs, .outputs = block.middle},
                before, ledger);
  for (const SpatialLayer& layer : block.spatial) RecordSpatial(layer, options, ledger);
  if (!block.basic)
    RecordPoint(block.name + ".conv3", block.name + ".bn3",
                {.inputs = block.middle, .outputs = block.outputs}, after, ledger);
  if (block.projected)
    RecordPoint(block.name + ".downsample.0", block.name + ".downsample.1",
                {.inputs = block.inputs, .outputs = block.outputs, .stride = block.stride}, after, ledger);
}

ResidualBlock MakeBlock(const ResidualOptions& options, int group, int64_t index, int64_t inputs,
                        int64_t side) {
  ResidualBlock block;
  block.name = "layer" + std::to_string(group + 1) + "." + std::to_string(index);
  block.basic = options.basic;
  block.inputs = inputs;
  block.middle = Scaled(64 << group, options.width);
  block.outputs = options.basic ? block.middle : options.expansion * block.middle;
  block.stride = index == 0 && group > 0 ? 2 : 1;
  block.projected = block.inputs != block.outputs || block.stride > 1;
  const auto add = [&](int number, int64_t from, int64_t stride, int64_t at) {
    block.spatial.push_back(MakeSpatial(options, group,
                                        {.name = block.name + ".conv" + std::to_string(number),
                                         .norm = block.name + ".bn" + std::to_string(number),
                                         .inputs = from,
                                         .outputs = block.middle,
                                         .stride = stride,
                                         .side = at}));
  };
  if (options.basic) {
    add(1, block.inputs, block.stride, side);
    add(2, block.middle, 1, block.spatial.back().side_after());
  } else {
    add(2, block.middle, block.stride, side);
  }
  return block;
}

}  // namespace

Window ResidualStemWindow(const ResidualOptions& options) {
  // CIFAR's pictures are small: the paper changes the stride "to one" and keeps the kernel.
  return {.kernel = 7, .stride = options.cifar ? 1 : 2, .padding = 3};
}

ResidualPlan MakeResidualPlan(const ResidualOptions& options) {
  ResidualPlan plan;
  plan.options = options;
  plan.stem = Scaled(64, options.width);
  int64_t side = ResidualStemWindow(options).After(options.input_size);
  if (!options.cifar) side = kResidualPool.After(side);
  int64_t channels = plan.stem;
  for (int group = 0; group < 4; ++group) {
    for (int64_t i = 0; i < options.blocks.at(static_cast<size_t>(group)); ++i) {
      plan.blocks.push_back(MakeBlock(options, group, i, channels, side));
      channels = plan.blocks.back().outputs;
      side = plan.blocks.back().spatial.back().side_after();
    }
  }
  plan.features = channels;
  return plan;
}

Ledger RecordResidual(const ResidualPlan& plan) {
  Ledger ledger;
  const Window window = ResidualStemWindow(plan.options);
  RecordPoint(
      "conv1", "bn1",
      {.inputs = 3, .outputs = plan.stem, .kernel = {window.kernel, window.kernel}, .stride = window.stride},
      window.After(plan.options.input_size), ledger);
  for (const ResidualBlock& block : plan.blocks) RecordBlock(block, plan.options, ledger);
  ledger.Linear("fc", plan.features, plan.options.classes, 1);
  return ledger;
}

}  // namespace saccade::models
