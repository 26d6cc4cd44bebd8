// Decodes the first page of a TIFF as a picture.
#pragma once

#include <functional>
#include <opencv2/core.hpp>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/core/request.h"

namespace saccade::server {

// Returns 8-bit BGR pixels, rotated upright; transparent pixels are blended with black. Needs seven bytes of
// memory per pixel, and throws OpenCV's exception if the allocation fails. INVALID_ARGUMENT if the file is
// damaged, and the error of `wanted`, which is asked between strips or tiles; a null one means always.
absl::StatusOr<cv::Mat> DecodeTiff(std::string_view bytes, const std::function<absl::Status()>& wanted);

// The same for a region of the upright picture of a file in tiles: decodes only those that it touches, and
// needs memory for the region alone. INVALID_ARGUMENT also if the file is not in tiles, or if the region is
// not within the picture.
absl::StatusOr<cv::Mat> DecodeTiffRegion(std::string_view bytes, const Region& region,
                                         const std::function<absl::Status()>& wanted = nullptr);

}  // namespace saccade::server
