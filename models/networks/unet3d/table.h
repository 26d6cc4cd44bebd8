// The restoring U-Nets, layer by layer: the 3-D U-Net of depth 3 of "Siamese Attention Networks", with
// attention in the bottom and in both decoder blocks, and the projecting network, which makes a plane from a
// volume for a 2-D U-Net. The paper gives no widths; the ones here are usual for its data sets. Does not
// include LibTorch.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "models/networks/ledger.h"
#include "models/networks/unet3d/options.h"

namespace saccade::models {

// Convolutions with kernel 3, each with its batch norm and ReLU: NAME.conv1 and NAME.bn1, and so on.
struct UnetBlock {
  std::string name;               // "encoder.0"
  std::vector<int64_t> channels;  // inputs of the first convolution, then outputs of each
};

// Blocks in order of execution. Each encoder is followed by a max pooling; each decoder's input is the map of
// the encoder at its level, concatenated with the coarser map, upsampled (nearest).
struct EncoderDecoder {
  std::string prefix;               // of all names
  std::array<UnetBlock, 5> blocks;  // encoder 0 and 1, bottom, decoder 1 and 0
  std::array<int64_t, 3> step;      // positions along depth, height and width that are pooled to one
  std::vector<int64_t> kernel;      // of all convolutions except the output's
};

// The U-Net itself, with two convolutions per block.
EncoderDecoder RestoringUnet(const UnetOptions& options);
// The network that weights a volume's planes before it, with one convolution per block. It pools only height
// and width.
EncoderDecoder ProjectingUnet(const UnetOptions& options);

// The paper's patch sizes, for counts.
inline constexpr int64_t kUnetNominalSide = 64;
constexpr int64_t UnetNominalDepth(const UnetOptions& options) { return options.projects ? 50 : 16; }

// Sides are padded to multiples of this, as they are halved twice.
inline constexpr int64_t kUnetMultiple = 4;
constexpr int64_t UnetSide(int64_t side) {
  return (side + kUnetMultiple - 1) / kUnetMultiple * kUnetMultiple;
}

// Records all layers. Siamese attention costs 4 N C multiply-adds, as in its paper, regular
// attention 2 N N C, and both N C C for each transform.
Ledger RecordUnet(const UnetOptions& options);

}  // namespace saccade::models
