// The options of the mobile networks: which of them it is, its paper's variants, and the sizes.
#pragma once

#include <cstdint>
#include <string>

#include "models/options.h"

namespace saccade::models {

enum class MobileAttention { kNone, kSiamese, kSoftmax, kPool, kOverN, kKroneckerKv, kKroneckerQkv };

struct MobileOptions {
  // What the architecture says, and the options cannot change.
  // MobileNetV2's modules expand r times; those of SANet and KANet r - 1 times, and keep the input beside it.
  bool keeps_input = true;
  // Whether x is added to what attention gives, where it does not stride.
  bool attention_skip = true;
  // What stands in attention's place where there is none: SANet's own module, or MobileNetV2's as in KANet.
  bool plain_without_attention = false;

  MobileAttention attention = MobileAttention::kNone;  // attention=NAME|none, see ParseMobileOptions
  bool learned = true;      // similarity=learned|ones, siamese alone: ones is the paper's "w/o params"
  bool global_term = true;  // global_term=true|false, siamese alone: the paper's "w/o global term"
  int64_t heads = 1;        // heads=1|2|4|8
  std::string map = {};     // map=..., expatt_mobilenetv2 alone: see kernels/expatt; empty: no such attention
  int64_t classes = 1000;   // classes=1..100000
  double width = 1;         // width=0.1..4: multiplies all channels, see networks/width.h
  int64_t input_size = 224;  // input_size=32..1024: the side of the pictures in pixels
};

// sanet has attention=sao|none, attnnet, attnnet_pool and attnnet_1n attention=on|none, kanet_kv and
// kanet_qkv attention=kao|none, mobilenetv2 none, mobilenetv2_sao attention=sao|none, mobilenetv2_kao
// attention=kv|qkv|none, expatt_mobilenetv2 attention=expatt|none. Throws LoadError that lists the legal
// names or values.
MobileOptions ParseMobileOptions(const std::string& architecture, const Options& options);

// All options of the architecture with their values, as text.
Options AsText(const std::string& architecture, const MobileOptions& options);

}  // namespace saccade::models
