#include "models/networks/resnet/table.h"

#include "models/layers/window.h"

namespace saccade::models {
namespace {

std::vector<int64_t> Sides(Size size) { return {size.height, size.width}; }

// A convolution and the batch norm behind it.
void RecordNormed(const std::string& convolution, const std::string& norm, const ConvolutionShape& shape,
                  Size output, Ledger& ledger) {
  ledger.Convolution(convolution, shape, Sides(output));
  ledger.BatchNorm(norm, shape.outputs);
}

Size RecordBlock(const Bottleneck& block, Size size, Ledger& ledger) {
  const Size middle = FirstWindow(block).After(size);
  const Size output = SecondWindow(block).After(middle);
  RecordNormed(block.name + ".conv1", block.name + ".bn1",
               {.inputs = block.inputs, .outputs = block.middle, .stride = FirstWindow(block).stride}, middle,
               ledger);
  RecordNormed(block.name + ".conv2", block.name + ".bn2",
               {.inputs = block.middle,
                .outputs = block.middle,
                .kernel = {3, 3},
                .stride = SecondWindow(block).stride,
                .dilation = block.dilation,
                .groups = block.groups},
               output, ledger);
  RecordNormed(block.name + ".conv3", block.name + ".bn3", {.inputs = block.middle, .outputs = block.outputs},
               output, ledger);
  if (block.projected) {
    RecordNormed(block.name + ".downsample.0", block.name + ".downsample.1",
                 {.inputs = block.inputs, .outputs = block.outputs, .stride = block.stride}, output, ledger);
  }
  return output;
}

}  // namespace

Window FirstWindow(const Bottleneck& block) { return {.stride = block.stride_on_first ? block.stride : 1}; }

Window SecondWindow(const Bottleneck& block) {
  return {.kernel = 3,
          .stride = block.stride_on_first ? 1 : block.stride,
          .padding = block.dilation,
          .dilation = block.dilation};
}

Window StemWindow(const ResnetTable& table) {
  return {.kernel = table.stem_kernel, .stride = 2, .padding = table.stem_kernel / 2};
}

Window PoolWindow(const ResnetTable& table) {
  return {.kernel = table.pool_kernel,
          .stride = 2,
          .padding = table.pool_kernel == 3 ? 1 : 0,
          .ceil = table.pool_ceil};
}

std::vector<Bottleneck> StageBlocks(const ResnetTable& table, int stage, const std::string& prefix) {
  std::vector<Bottleneck> blocks;
  int64_t inputs = stage == 0 ? table.StemChannels() : table.Channels(stage - 1);
  for (int64_t i = 0; i < table.blocks.at(stage); ++i) {
    blocks.push_back({.name = prefix + "layer" + std::to_string(stage + 1) + "." + std::to_string(i),
                      .inputs = inputs,
                      // torchvision's rule: 64 * 2^stage, wider for ResNeXt.
                      .middle = (table.width << stage) * table.width_per_group / 64 * table.groups,
                      .outputs = table.Channels(stage),
                      .stride = i == 0 ? table.strides.at(stage) : 1,
                      .dilation = table.dilations.at(stage),
                      .groups = table.groups,
                      .stride_on_first = table.stride_on_first,
                      .projected = i == 0});
    inputs = table.Channels(stage);
  }
  return blocks;
}

Size RecordStem(const ResnetTable& table, const std::string& prefix, Size size, Ledger& ledger) {
  const Size output = StemWindow(table).After(size);
  RecordNormed(prefix + "conv1", prefix + "bn1",
               {.inputs = 3,
                .outputs = table.StemChannels(),
                .kernel = {table.stem_kernel, table.stem_kernel},
                .stride = 2},
               output, ledger);
  return PoolWindow(table).After(output);
}

Size RecordStage(const ResnetTable& table, int stage, const std::string& prefix, Size size, Ledger& ledger) {
  for (const Bottleneck& block : StageBlocks(table, stage, prefix)) size = RecordBlock(block, size, ledger);
  return size;
}

}  // namespace saccade::models
