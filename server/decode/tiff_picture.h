// Decodes the first page of a TIFF as a picture.
#pragma once

#include <opencv2/core.hpp>
#include <string_view>

#include "absl/status/statusor.h"

namespace saccade::server {

// Returns 8-bit BGR pixels, rotated upright; transparent pixels are blended with black. Needs seven bytes of
// memory per pixel, and throws OpenCV's exception if the allocation fails. INVALID_ARGUMENT if the file is
// damaged.
absl::StatusOr<cv::Mat> DecodeTiff(std::string_view bytes);

}  // namespace saccade::server
