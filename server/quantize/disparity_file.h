// Reads the measured disparities of a stereo pair.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace saccade::server {

// Returns the disparity of each pixel of the left picture, row by row; NaN if the pixel does not count. By
// the file's extension it is
//   .png  of 16 bits, as KITTI's: 256 times the disparity, 0 for a pixel without a measurement
//   .pfm  a portable float map with one channel, as Scene Flow's: a pixel whose value is not finite, or not
//   below
//         `max_disparity`, does not count
// INVALID_ARGUMENT names the file if it cannot be read or is not as large as the picture. Blocks.
absl::StatusOr<std::vector<float>> ReadDisparityFile(const std::string& path, int64_t height, int64_t width,
                                                     double max_disparity);

}  // namespace saccade::server
