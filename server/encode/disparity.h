// Serialises disparity maps.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "models/tasks/result.h"
#include "server/pictures/still_wanted.h"

namespace saccade::server {

// Both ask `wanted` before about each 64 Ki pixels, and return its error.

// 16-bit greyscale PNG of disparity * 256, rounded, as in KITTI. 0 means that there is no value and is
// written for NaN; all other values are clamped to [1, 65535], so that 65535 stands for 255.998 and above.
// INTERNAL if the number of values does not match the size; otherwise errors as GreyPng.
absl::StatusOr<std::string> DisparityPng(const models::Disparity& result,
                                         const StillWanted& wanted = nullptr);

// width * height little-endian float32, row by row. INTERNAL if the number of values does not match the size.
absl::StatusOr<std::string> DisparityFloats(const models::Disparity& result,
                                            const StillWanted& wanted = nullptr);

}  // namespace saccade::server
