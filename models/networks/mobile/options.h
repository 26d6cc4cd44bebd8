// The options of the mobile networks: kind of network, variants from its paper, and sizes.
#pragma once

#include <cstdint>
#include <string>

#include "models/api/options.h"
#include "models/api/placement.h"

namespace saccade::models {

enum class MobileAttention {
  kNone,
  kSiamese,
  kSoftmax,
  kPool,
  kOverN,
  kKroneckerKv,
  kKroneckerQkv,
  // Squeeze-and-excite in the place of attention: the paper's SENet.
  kSqueeze
};

struct MobileOptions {
  // Set by the architecture; options cannot change these. MobileNetV2's modules expand r times; those of
  // SANet and KANet r - 1 times, and keep the input beside the expansion.
  bool keeps_input = true;
  // Whether x is added to the attention's result in modules without a stride.
  bool attention_skip = true;
  // Whether modules become MobileNetV2's (as in KANet) if there is no attention, or SANet's own.
  bool plain_without_attention = false;

  MobileAttention attention = MobileAttention::kNone;  // attention=NAME|none, see ParseMobileOptions
  bool learned = true;      // similarity=learned|ones, only siamese: ones is the paper's "w/o params"
  bool global_term = true;  // global_term=true|false, only siamese: the paper's "w/o global term"
  int64_t heads = 1;        // heads=1|2|4|8
  int64_t reduction = 2;    // reduction=1..64, only sanet with attention=se: channels per squeezed channel
  std::string map = {};     // map=..., only expatt_mobilenetv2: see kernels/expatt; empty without attention
  int64_t classes = 1000;   // classes=1..100000
  double width = 1;         // width=0.1..4: multiplies all channels, see networks/width.h
  // Side of the network's input: input_size=32..1024, or crop_size for torchvision's name.
  int64_t input_size = 224;
  ImageInput pictures = {};  // see models/networks/picture_options.h
};

// The option `attention` is: for sanet sao|se|none; for attnnet, attnnet_pool and attnnet_1n on|none; for
// kanet_kv and kanet_qkv kao|none; for mobilenetv2_sao sao|none; for mobilenetv2_kao kv|qkv|none; for
// expatt_mobilenetv2 expatt|none. mobilenetv2 and torchvision's mobilenet_v2 do not have it. Throws a
// LoadError that lists the legal names or values.
MobileOptions ParseMobileOptions(const std::string& architecture, const Options& options);

// Returns all options of the architecture with their values, as text.
Options AsText(const std::string& architecture, const MobileOptions& options);

}  // namespace saccade::models
