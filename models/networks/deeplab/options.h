// DeepLabV2's options: the output layers of its papers, and sizes.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "models/api/options.h"
#include "models/api/placement.h"

namespace saccade::models {

enum class DeepLabHead {
  kKao,            // Kronecker attention, of the architecture's kind
  kAttention,      // regular attention
  kAttentionPool,  // regular attention with keys and values pooled 2x2
  kAspp,           // DeepLabV2's own: four dilated convolutions, summed
};

struct DeepLabOptions {
  std::string kao;                       // "kv" or "qkv", from the architecture's name
  DeepLabHead head = DeepLabHead::kKao;  // head=kao|attention|attention_pool|aspp
  int64_t classes = 21;                  // classes=1..255: label maps have 8 bits
  int64_t head_channels = 512;           // head_channels=8..2048, a multiple of heads; not for aspp
  int64_t heads = 1;                     // heads=1..64; not for aspp
  // long_side=64..8192: larger pictures are scaled down to it, others keep their size. 1024 rather than 1025,
  // because it is a multiple of the buckets' stride (a map's side is 129 for both).
  int64_t long_side = 1024;
  // buckets=stride:N or sizes. 32 pads VOC's 500 x 375 by 5 %, and pictures of one camera or data set still
  // share buckets. The map's own 8 would pad less, but pictures would rarely share a batch.
  Buckets buckets = {.sizes = {}, .stride = 32};
  bool exact = true;                              // exact=true|false, see Resnet
  double width = 1;                               // width=0.125..2: multiplies the backbone's channels
  std::array<int64_t, 4> blocks = {3, 4, 23, 3};  // blocks=A,B,C,D, each 1..64
  double epsilon = 1e-5;                          // batch_norm_epsilon=1e-9..0.1, for all batch norms
};

// Throws a LoadError that lists the legal names or values.
DeepLabOptions ParseDeepLabOptions(const std::string& architecture, const Options& options);

// Returns all options with their values, as text.
Options AsText(const DeepLabOptions& options);

}  // namespace saccade::models
