#include "models/networks/resnet/table.h"

#include "models/layers/window.h"

namespace saccade::models {
namespace {

Size SizeOf(const Sides& sides) { return {sides.at(0), sides.at(1)}; }

// Applies the window to every side.
Sides After(const Window& window, Sides sides) {
  for (int64_t& side : sides) side = window.After(side);
  return sides;
}

// Returns a kernel of `width` along every side.
Sides Kernel(int64_t width, const Sides& sides) { return Sides(sides.size(), width); }

// Records a convolution and its batch norm.
void RecordNormed(const std::string& convolution, const std::string& norm, const ConvolutionShape& shape,
                  const Sides& output, Ledger& ledger) {
  ledger.Convolution(convolution, shape, output);
  ledger.BatchNorm(norm, shape.outputs);
}

Sides RecordBlock(const Bottleneck& block, const Sides& sides, Ledger& ledger) {
  const Sides middle = After(FirstWindow(block), sides);
  const Sides output = After(SecondWindow(block), middle);
  const Sides point = Kernel(1, sides);
  RecordNormed(
      block.name + ".conv1", block.name + ".bn1",
      {.inputs = block.inputs, .outputs = block.middle, .kernel = point, .stride = FirstWindow(block).stride},
      middle, ledger);
  RecordNormed(block.name + ".conv2", block.name + ".bn2",
               {.inputs = block.middle,
                .outputs = block.middle,
                .kernel = Kernel(3, sides),
                .stride = SecondWindow(block).stride,
                .dilation = block.dilation,
                .groups = block.groups},
               output, ledger);
  RecordNormed(block.name + ".conv3", block.name + ".bn3",
               {.inputs = block.middle, .outputs = block.outputs, .kernel = point}, output, ledger);
  if (block.projected) {
    RecordNormed(block.name + ".downsample.0", block.name + ".downsample.1",
                 {.inputs = block.inputs, .outputs = block.outputs, .kernel = point, .stride = block.stride},
                 output, ledger);
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

Sides RecordStem(const ResnetTable& table, const std::string& prefix, const Sides& sides, Ledger& ledger) {
  const bool clips = sides.size() == 3;
  ConvolutionShape shape{.inputs = 3,
                         .outputs = table.StemChannels(),
                         .kernel = Kernel(table.stem_kernel, sides),
                         .stride = StemWindow(table).stride};
  Sides output = After(StemWindow(table), sides);
  if (clips) {
    Window along = StemWindow(table);
    shape.depth_stride = along.stride = kStemDepthStride;
    output.front() = along.After(sides.front());
  }
  RecordNormed(prefix + "conv1", prefix + "bn1", shape, output, ledger);
  return After(PoolWindow(table), output);
}

Sides RecordStage(const ResnetTable& table, int stage, const std::string& prefix, Sides sides,
                  Ledger& ledger) {
  for (const Bottleneck& block : StageBlocks(table, stage, prefix)) sides = RecordBlock(block, sides, ledger);
  return sides;
}

Size RecordStem(const ResnetTable& table, const std::string& prefix, Size size, Ledger& ledger) {
  return SizeOf(RecordStem(table, prefix, SidesOf(size), ledger));
}

Size RecordStage(const ResnetTable& table, int stage, const std::string& prefix, Size size, Ledger& ledger) {
  return SizeOf(RecordStage(table, stage, prefix, SidesOf(size), ledger));
}

}  // namespace saccade::models
