// SANet's options: the variants of its paper, and the sizes.
#pragma once

#include <cstdint>

#include "models/options.h"

namespace saccade::models {

struct SanetOptions {
  bool attention = true;     // attention=sao|none: none is the paper's "SANet w/o SAO"
  bool learned = true;       // similarity=learned|ones: ones is the paper's "w/o params"
  bool global_term = true;   // global_term=true|false: false is the paper's "w/o global term"
  int64_t classes = 1000;    // classes=1..100000
  double width = 1;          // width=0.1..4: multiplies all channels, see Scaled
  int64_t input_size = 224;  // input_size=32..1024: the side of the pictures in pixels
};

// Throws LoadError that lists the legal names or values.
SanetOptions ParseSanetOptions(const Options& options);

// All options with their values, as text.
Options AsText(const SanetOptions& options);

// The multiple of 8 nearest to channels * width, halves upwards, and at least 8.
int64_t Scaled(int64_t channels, double width);

}  // namespace saccade::models
