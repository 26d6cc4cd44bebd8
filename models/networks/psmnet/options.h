// EA-PSMNet's options: attention and sizes.
#pragma once

#include <cstdint>
#include <string>

#include "models/api/options.h"
#include "models/api/placement.h"

namespace saccade::models {

// Height, width and maximum disparity must be multiples of this: a quarter of each is halved twice and
// doubled twice.
inline constexpr int64_t kPsmnetStride = 16;

struct PsmnetOptions {
  bool attention = true;                  // attention=ea|none: none is plain PSMNet
  int64_t max_disparity = 192;            // max_disparity=16..768, a multiple of 16: exclusive bound
  int64_t key_channels = 16;              // key_channels=1..512
  int64_t value_channels = 32;            // value_channels=1..512; reprojected unless equal to channels()
  int64_t heads = 1;                      // heads=1..64: must divide key_channels and value_channels
  std::string normalization = "softmax";  // normalization=softmax|scaling
  // align_corners=true|false: of all enlargements, as in torch.nn.functional.interpolate. PSMNet's code
  // leaves it unset, which was true before PyTorch 0.4 and is false since; its authors advise true.
  bool align_corners = true;
  double width = 1;          // width=0.25..4: multiplies all channels of PSMNet
  int64_t long_side = 1280;  // long_side=64..4096: larger pairs are scaled down to it
  Buckets buckets = {.sizes = {}, .stride = kPsmnetStride};  // buckets=stride:N or sizes, multiples of 16
  // exact=true|false: true computes each pair at the smallest size that the network can take, whatever its
  // bucket; false computes the whole bucket, so that there are only as many shapes as buckets.
  bool exact = true;

  // Channels of the narrowest maps, 32 in the paper: the multiple of 8 nearest to 32 * width.
  int64_t channels() const;
  bool reprojected() const { return value_channels != channels(); }
};

// Throws a LoadError that lists the legal names or values.
PsmnetOptions ParsePsmnetOptions(const std::string& architecture, const Options& options);

// Returns all options with their values, as text.
Options AsText(const PsmnetOptions& options);

}  // namespace saccade::models
