// Residual networks for pictures or clips, as detectors and segmenters use them, without a classifier. Names
// are torchvision's. Does not include LibTorch.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "models/api/placement.h"
#include "models/layers/window.h"
#include "models/networks/ledger.h"

namespace saccade::models {

struct ResnetTable {
  std::array<int64_t, 4> blocks = {3, 4, 6, 3};
  int64_t width = 64;            // channels of the stem, and of stage 1's 3x3 convolutions if groups = 1
  int64_t groups = 1;            // ResNeXt: 32
  int64_t width_per_group = 64;  // ResNeXt 32x4d: 4
  std::array<int64_t, 4> strides = {1, 2, 2, 2};
  std::array<int64_t, 4> dilations = {1, 1, 1, 1};
  // Whether a stage's first block has its stride on the first 1x1 (MSRA, Caffe) or on the 3x3 (torchvision).
  bool stride_on_first = false;
  int64_t stem_kernel = 7;
  // The pooling after the stem: 3 wide and padded by 1, or 2 wide (EA's paper); its stride is 2.
  int64_t pool_kernel = 3;
  bool pool_ceil = false;
  double epsilon = 1e-5;  // of all batch norms

  int64_t StemChannels() const { return width; }
  // Output channels of stage 0 to 3.
  int64_t Channels(int stage) const { return (width * 4) << stage; }
};

// A bottleneck block: 1x1, 3x3, 1x1, and the shortcut.
struct Bottleneck {
  std::string name;  // PREFIX + "layer1.0"
  int64_t inputs = 0;
  int64_t middle = 0;
  int64_t outputs = 0;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t groups = 1;
  bool stride_on_first = false;
  bool projected = false;  // the shortcut is a 1x1 convolution, NAME.downsample.0 and .1
};

Window FirstWindow(const Bottleneck& block);
Window SecondWindow(const Bottleneck& block);
Window StemWindow(const ResnetTable& table);
Window PoolWindow(const ResnetTable& table);

// Returns the blocks of stage 0 to 3.
std::vector<Bottleneck> StageBlocks(const ResnetTable& table, int stage, const std::string& prefix);

// A network for clips has kernels with as many dimensions as its maps, and its stem's convolution keeps all
// frames; otherwise it is the same as one for pictures.
inline Sides SidesOf(Size size) { return {size.height, size.width}; }

inline constexpr int64_t kStemDepthStride = 1;

// Record the stem or one stage. `sides` is the size of the input map; returns that of the output map.
Sides RecordStem(const ResnetTable& table, const std::string& prefix, const Sides& sides, Ledger& ledger);
Sides RecordStage(const ResnetTable& table, int stage, const std::string& prefix, Sides sides,
                  Ledger& ledger);
Size RecordStem(const ResnetTable& table, const std::string& prefix, Size size, Ledger& ledger);
Size RecordStage(const ResnetTable& table, int stage, const std::string& prefix, Size size, Ledger& ledger);

}  // namespace saccade::models
