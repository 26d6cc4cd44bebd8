// Disparities as numbers and as KITTI's PNG. No OpenCV here.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/types.h"

namespace saccade::client {

// Row by row, NaN where there is none. INTERNAL if the map is not what its format and size say.
absl::StatusOr<std::vector<float>> ReadDisparity(const Disparity& answer);

// 16 bits grey, value * 256 rounded and at least 1; 0 where there is none.
absl::StatusOr<std::string> DisparityPng(int width, int height, const std::vector<float>& values);

}  // namespace saccade::client
