#include "models/networks/psmnet/table.h"

#include <algorithm>

namespace saccade::models {
namespace {

struct Stage {
  int64_t widening;  // factor of channels()
  int64_t blocks;
  int64_t stride;
  int64_t dilation;
};

constexpr std::array<Stage, kPsmnetStages> kStages = {
    {{1, 3, 1, 1}, {2, 16, 2, 1}, {4, 3, 1, 1}, {4, 3, 1, 2}}};

// Divides the sides, which must be multiples of `divisor`.
Sides Divided(Sides sides, int64_t divisor) {
  for (int64_t& side : sides) side /= divisor;
  return sides;
}

// NAME.0 is a convolution and NAME.1 its batch norm, as in the authors' convbn and convbn_3d.
void RecordNormed(const std::string& name, const ConvolutionShape& shape, const Sides& output,
                  Ledger& ledger) {
  ledger.Convolution(name + ".0", shape, output);
  ledger.BatchNorm(name + ".1", shape.outputs);
}

void RecordBlock(const PsmnetBlock& block, const Sides& output, Ledger& ledger) {
  ConvolutionShape shape{.inputs = block.inputs,
                         .outputs = block.outputs,
                         .kernel = {3, 3},
                         .stride = block.stride,
                         .dilation = block.dilation};
  RecordNormed(block.name + ".conv1.0", shape, output, ledger);
  shape.inputs = block.outputs;
  shape.stride = 1;
  RecordNormed(block.name + ".conv2", shape, output, ledger);
  if (!block.projected) return;
  RecordNormed(block.name + ".downsample",
               {.inputs = block.inputs, .outputs = block.outputs, .stride = block.stride}, output, ledger);
}

void RecordPyramid(const std::string& prefix, int64_t channels, const Sides& map, Ledger& ledger) {
  for (size_t branch = 0; branch < kPyramidPools.size(); ++branch) {
    Sides pooled;
    for (const int64_t side : map) pooled.push_back(side / std::min(side, kPyramidPools[branch]));
    RecordNormed(prefix + "branch" + std::to_string(branch + 1) + ".1",
                 {.inputs = 4 * channels, .outputs = channels}, pooled, ledger);
  }
  RecordNormed(prefix + "lastconv.0", {.inputs = 10 * channels, .outputs = 4 * channels, .kernel = {3, 3}},
               map, ledger);
  ledger.Convolution(prefix + "lastconv.2", {.inputs = 4 * channels, .outputs = channels}, map);
}

void RecordFeatures(const PsmnetOptions& options, const Sides& picture, Ledger& ledger) {
  const std::string prefix = "feature_extraction.";
  const int64_t channels = options.channels();
  const Sides half = Divided(picture, 2);
  const Sides quarter = Divided(picture, 4);
  for (int64_t layer = 0; layer < 3; ++layer) {
    RecordNormed(prefix + "firstconv." + std::to_string(2 * layer),
                 {.inputs = layer == 0 ? 3 : channels,
                  .outputs = channels,
                  .kernel = {3, 3},
                  .stride = layer == 0 ? 2 : 1},
                 half, ledger);
  }
  for (int stage = 0; stage < kPsmnetStages; ++stage) {
    for (const PsmnetBlock& block : PsmnetBlocks(options, stage)) {
      RecordBlock(block, stage == 0 ? half : quarter, ledger);
    }
  }
  RecordPyramid(prefix, channels, quarter, ledger);
}

ConvolutionShape Cube(int64_t inputs, int64_t outputs, int64_t stride = 1, bool transposed = false) {
  return {
      .inputs = inputs, .outputs = outputs, .kernel = {3, 3, 3}, .stride = stride, .transposed = transposed};
}

void RecordHourglass(const std::string& name, int64_t channels, const Sides& volume, Ledger& ledger) {
  const int64_t wide = 2 * channels;
  const Sides half = Divided(volume, 2);
  const Sides quarter = Divided(volume, 4);
  RecordNormed(name + ".conv1.0", Cube(channels, wide, 2), half, ledger);
  RecordNormed(name + ".conv2", Cube(wide, wide), half, ledger);
  RecordNormed(name + ".conv3.0", Cube(wide, wide, 2), quarter, ledger);
  RecordNormed(name + ".conv4.0", Cube(wide, wide), quarter, ledger);
  RecordNormed(name + ".conv5", Cube(wide, wide, 2, true), half, ledger);
  RecordNormed(name + ".conv6", Cube(wide, channels, 2, true), volume, ledger);
}

}  // namespace

std::vector<PsmnetBlock> PsmnetBlocks(const PsmnetOptions& options, int stage) {
  const auto at = [&](int index) { return kStages.at(static_cast<size_t>(index)); };
  const int64_t channels = options.channels();
  int64_t inputs = stage == 0 ? channels : channels * at(stage - 1).widening;
  std::vector<PsmnetBlock> blocks;
  for (int64_t block = 0; block < at(stage).blocks; ++block) {
    const int64_t outputs = channels * at(stage).widening;
    const int64_t stride = block == 0 ? at(stage).stride : 1;
    blocks.push_back(
        {.name = "feature_extraction.layer" + std::to_string(stage + 1) + "." + std::to_string(block),
         .inputs = inputs,
         .outputs = outputs,
         .stride = stride,
         .dilation = at(stage).dilation,
         .projected = stride != 1 || inputs != outputs});
    inputs = outputs;
  }
  return blocks;
}

Ledger RecordPsmnet(const PsmnetOptions& options) {
  Ledger ledger;
  const int64_t channels = options.channels();
  const Size padded = PsmnetSize(kPsmnetNominal);
  const Sides volume = Divided({options.max_disparity, padded.height, padded.width}, 4);
  RecordFeatures(options, {padded.height, padded.width}, ledger);
  RecordNormed("dres0.0", Cube(2 * channels, channels), volume, ledger);
  RecordNormed("dres0.2", Cube(channels, channels), volume, ledger);
  RecordNormed("dres1.0", Cube(channels, channels), volume, ledger);
  RecordNormed("dres1.2", Cube(channels, channels), volume, ledger);
  for (const char* hourglass : kHourglassNames) RecordHourglass(hourglass, channels, volume, ledger);
  if (options.attention) {
    ledger.EfficientAttention(
        kPsmnetAttention, channels, options.key_channels, options.value_channels, options.reprojected(),
        Divided({options.max_disparity, kPsmnetNominal.height, kPsmnetNominal.width}, 4));
  }
  for (const std::string head : kCostHeadNames) {
    RecordNormed(head + ".0", Cube(channels, channels), volume, ledger);
    ledger.Convolution(head + ".2", Cube(channels, 1), volume);
  }
  return ledger;
}

}  // namespace saccade::models
