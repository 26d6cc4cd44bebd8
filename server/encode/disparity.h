// A disparity map as files have it.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "models/tasks/result.h"

namespace saccade::server {

// 16 bits grey, disparity * 256 rounded, as KITTI has it: 0 would say that there is no value, so the smallest
// is 1, and the largest, 65535, stands for everything from 255.998 up; what is not a number has none.
// INTERNAL if the values do not fill the size; otherwise as GreyPng.
absl::StatusOr<std::string> DisparityPng(const models::Disparity& result);

// width * height little-endian float32, row by row. INTERNAL if the values do not fill the size.
absl::StatusOr<std::string> DisparityFloats(const models::Disparity& result);

}  // namespace saccade::server
