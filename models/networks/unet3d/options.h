// The options of the restoring U-Nets: siamese attention, variants from its paper, and tiling.
#pragma once

#include <cstdint>
#include <string>

#include "models/api/options.h"

namespace saccade::models {

// The attention in the bottom and decoder blocks; kRegular is the paper's "U-Net+Attn".
enum class UnetAttention { kNone, kSiamese, kRegular };

struct UnetOptions {
  // Set by the architecture: if true, a volume is projected to one plane, which a 2-D U-Net restores.
  bool projects = false;

  UnetAttention attention = UnetAttention::kSiamese;  // attention=sao|attn|none: none is the plain U-Net
  bool learned = true;                                // similarity=learned|ones
  bool global_term = true;                            // global_term=true|false
  int64_t heads = 1;                                  // heads=1|2|4|8
  bool percentile = true;                             // normalize=percentile|none
  bool residual = true;  // residual=true|false: the network's output is added to its input
  double width = 1;      // width=0.25..4: multiplies all channels, see networks/width.h
  // tile=0..4096: maximum side of a tile computed at once, in positions of the current map; odd values are
  // rounded up to even, and 0 means the whole map. It bounds memory, and changes results only by rounding. A
  // projection's tiles have the whole depth, and smaller sides if that is large (ProjectionTiling).
  int64_t tile = 96;
  // max_voxels=4096..2^31: volumes that are larger once padded are rejected. Regular attention compares all
  // pairs of voxels, so that with it the default is 2^18.
  int64_t max_voxels = int64_t{128} << 20;
};

// Parses the options of unet3d_sao_denoise and unet3d_sao_project. Throws a LoadError that lists the legal
// names or values.
UnetOptions ParseUnetOptions(const std::string& architecture, const Options& options);

// Returns all options with their values, as text.
Options AsText(const UnetOptions& options);

}  // namespace saccade::models
