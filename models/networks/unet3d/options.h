// The options of the restoring U-Nets: siamese attention, its paper's variants, and how volumes are cut.
#pragma once

#include <cstdint>
#include <string>

#include "models/options.h"

namespace saccade::models {

struct UnetOptions {
  // What the architecture says: a volume becomes one plane, which a 2-D U-Net restores.
  bool projects = false;

  bool attention = true;    // attention=sao|none: none is the plain U-Net
  bool learned = true;      // similarity=learned|ones
  bool global_term = true;  // global_term=true|false
  int64_t heads = 1;        // heads=1|2|4|8
  bool percentile = true;   // normalize=percentile|none
  bool residual = true;     // residual=true|false: the network gives what is to be added to its input
  double width = 1;         // width=0.25..4: multiplies all channels, see networks/width.h
  // tile=0..4096: the longest side of what is computed at once, in positions of the map at hand, odd ones
  // counted as one more; 0 is the whole map. It bounds memory, and changes answers by rounding alone.
  int64_t tile = 96;
  int64_t most_voxels = int64_t{128} << 20;  // most_voxels=4096..2^31: larger volumes are refused
};

// For unet3d_sao_denoise and unet3d_sao_project. Throws LoadError that lists the legal names or values.
UnetOptions ParseUnetOptions(const std::string& architecture, const Options& options);

// All options with their values, as text.
Options AsText(const UnetOptions& options);

}  // namespace saccade::models
