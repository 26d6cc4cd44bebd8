// EA-PSMNet's options: its paper's attention, and the sizes.
#pragma once

#include <cstdint>
#include <string>

#include "models/options.h"
#include "models/placement.h"

namespace saccade::models {

// What the hourglasses ask of height, width and largest disparity: a quarter of it is halved twice and
// doubled twice.
inline constexpr int64_t kPsmnetStride = 16;

struct PsmnetOptions {
  bool attention = true;                  // attention=ea|none: none is plain PSMNet
  int64_t max_disparity = 192;            // max_disparity=16..768, a multiple of 16: disparities below it
  int64_t key_channels = 16;              // key_channels=1..512
  int64_t value_channels = 32;            // value_channels=1..512; projected back unless it is channels()
  int64_t heads = 1;                      // heads=1..64: divides key_channels and value_channels
  std::string normalization = "softmax";  // normalization=softmax|scaling
  double width = 1;                       // width=0.25..4: multiplies all channels of PSMNet
  int64_t long_side = 1280;               // long_side=64..4096: larger pairs are scaled down to it
  Buckets buckets = {.sizes = {}, .stride = kPsmnetStride};  // buckets=stride:N or sizes, multiples of 16
  // exact=true|false: true computes each pair at the smallest size the network takes it at, whatever its
  // bucket; false computes the whole bucket, so that there are only as many shapes as buckets.
  bool exact = true;

  // Of the narrowest maps, 32 in the paper: the multiple of 8 nearest to 32 * width.
  int64_t channels() const;
  bool reprojected() const { return value_channels != channels(); }
};

// Throws LoadError that lists the legal names or values.
PsmnetOptions ParsePsmnetOptions(const std::string& architecture, const Options& options);

// All options with their values, as text.
Options AsText(const PsmnetOptions& options);

}  // namespace saccade::models
