// A TIFF's first page as a picture.
#pragma once

#include <opencv2/core.hpp>
#include <string_view>

#include "absl/status/statusor.h"

namespace saccade::server {

// 8-bit blue, green, red, upright. What is transparent is as if on black. Takes memory for seven bytes a
// pixel; throws as OpenCV does if there is none. INVALID_ARGUMENT if it is damaged.
absl::StatusOr<cv::Mat> DecodeTiff(std::string_view bytes);

}  // namespace saccade::server
