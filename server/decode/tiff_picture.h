// Decodes the first page of a TIFF as a picture.
#pragma once

#include <functional>
#include <opencv2/core.hpp>
#include <string_view>

#include "absl/status/statusor.h"

namespace saccade::server {

// Returns 8-bit BGR pixels, rotated upright; transparent pixels are blended with black. Needs seven bytes of
// memory per pixel, and throws OpenCV's exception if the allocation fails. INVALID_ARGUMENT if the file is
// damaged, and the error of `wanted`, which is asked between strips or tiles; a null one means always.
absl::StatusOr<cv::Mat> DecodeTiff(std::string_view bytes, const std::function<absl::Status()>& wanted);

}  // namespace saccade::server
