// PSMNet, layer by layer: "Pyramid Stereo Matching Network" with its stacked hourglass, and the attention
// that "Efficient Attention" adds after the last hourglass. Names are those of its authors' implementation.
// Does not include LibTorch.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "models/networks/ledger.h"
#include "models/networks/psmnet/options.h"

namespace saccade::models {

// One residual block of the feature extraction: two 3x3 convolutions and the shortcut, added without ReLU.
struct PsmnetBlock {
  std::string name;  // "feature_extraction.layer1.0"
  int64_t inputs = 0;
  int64_t outputs = 0;
  int64_t stride = 1;
  int64_t dilation = 1;
  bool projected = false;  // the shortcut is a 1x1 convolution, NAME.downsample.0 and .1
};

inline constexpr int kPsmnetStages = 4;

// Returns the blocks of stage 0 to 3, which are layer1 to layer4.
std::vector<PsmnetBlock> PsmnetBlocks(const PsmnetOptions& options, int stage);

// Spatial pyramid pooling: branch N pools squares of this side, at quarter resolution. If the map is smaller,
// the squares are cut to it, and the branch holds the map's mean.
inline constexpr std::array<int64_t, 4> kPyramidPools = {64, 32, 16, 8};

inline constexpr std::array<const char*, 3> kHourglassNames = {"dres2", "dres3", "dres4"};
inline constexpr std::array<const char*, 3> kCostHeadNames = {"classif1", "classif2", "classif3"};

inline constexpr const char* kPsmnetAttention = "attention";

// The nominal size, Scene Flow's, for counts. Convolutions are counted on its padded size, 544 x 960;
// attention, as in its paper, on a quarter of 540 x 960 itself.
inline constexpr Size kPsmnetNominal = {540, 960};

Ledger RecordPsmnet(const PsmnetOptions& options);

// Rounds a side up to one that the network can take.
constexpr int64_t PsmnetSide(int64_t side) {
  return (side + kPsmnetStride - 1) / kPsmnetStride * kPsmnetStride;
}
constexpr Size PsmnetSize(Size size) { return {PsmnetSide(size.height), PsmnetSide(size.width)}; }

}  // namespace saccade::models
