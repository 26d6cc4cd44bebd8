// The restoring U-Nets' table: the 3-D U-Net of depth 3 of "Siamese Attention Networks", with attention in
// the bottom and in both decoder blocks, and the projecting network, which makes a plane of a volume before a
// U-Net in two dimensions. The paper gives no widths: they are those usual for its data sets. No LibTorch
// here.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "models/networks/ledger.h"
#include "models/networks/unet3d/options.h"

namespace saccade::models {

// Convolutions of kernel 3, each with its batch norm and ReLU: NAME.conv1 and NAME.bn1, and so on.
struct UnetBlock {
  std::string name;               // "encoder.0"
  std::vector<int64_t> channels;  // that enter, and that leave each convolution
};

// Blocks in the order of execution: each encoder is followed by a max pooling, each decoder gets, behind the
// map of the encoder beside it, the coarser map enlarged to the nearest.
struct EncoderDecoder {
  std::string prefix;               // of all names
  std::array<UnetBlock, 5> blocks;  // encoder 0 and 1, bottom, decoder 1 and 0
  std::array<int64_t, 3> step;      // positions along depth, height and width that are pooled to one
  std::vector<int64_t> kernel;      // of all convolutions but the output's
};

// The U-Net, of two convolutions a block.
EncoderDecoder RestoringUnet(const UnetOptions& options);
// What weighs a volume's planes before it, of one convolution a block: volumes are halved in height and width
// alone.
EncoderDecoder ProjectingUnet(const UnetOptions& options);

// The paper's patches, for which layers are counted.
inline constexpr int64_t kUnetNominalSide = 64;
constexpr int64_t UnetNominalDepth(const UnetOptions& options) { return options.projects ? 50 : 16; }

// What sides are padded to multiples of: they are halved twice.
inline constexpr int64_t kUnetMultiple = 4;
constexpr int64_t UnetSide(int64_t side) {
  return (side + kUnetMultiple - 1) / kUnetMultiple * kUnetMultiple;
}

// Siamese attention costs 4 N C multiply-adds, as its paper counts it, and N C C for each transform.
Ledger RecordUnet(const UnetOptions& options);

}  // namespace saccade::models
