// Decodes a picture file of any format that is read here.
#pragma once

#include <opencv2/core.hpp>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/pictures/picture_header.h"
#include "server/pictures/still_wanted.h"

namespace saccade::server {

// Returns the pixels as 8-bit BGR, upright; those of a JPEG shrunk by `reduction`, which is 1, 2, 4 or 8.
// Grey becomes three equal channels, 16 bits become 8, CMYK becomes RGB by its complement; transparency and
// colour profiles are ignored (a TIFF is blended with black). `wanted`, if not null, is asked between rows,
// strips or tiles, and its error ends decoding. REQUIRES: `header` was read from `bytes`. INVALID_ARGUMENT if
// the file is damaged; std::bad_alloc and cv::Exception if there is no memory.
absl::StatusOr<cv::Mat> DecodePictureFile(std::string_view bytes, const PictureHeader& header, int reduction,
                                          const StillWanted& wanted);

// Reads header and pixels of a file that is within the limits. Errors as above, and of ReadPictureHeader;
// RESOURCE_EXHAUSTED if there is no memory. Does not throw.
absl::StatusOr<cv::Mat> ReadPictureFile(std::string_view bytes, const DecodeLimits& limits);

}  // namespace saccade::server
