// Converts disparities between numbers and KITTI's PNG. This header needs no OpenCV.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cpp/types.h"

namespace saccade::client {

// Returns the values row by row, NaN where there is none. INTERNAL if the map does not match its format and
// size.
absl::StatusOr<std::vector<float>> ReadDisparity(const Disparity& answer);

// A 16-bit grey PNG of value * 256, rounded and at least 1; 0 where there is no value.
absl::StatusOr<std::string> DisparityPng(int width, int height, const std::vector<float>& values);

}  // namespace saccade::client
