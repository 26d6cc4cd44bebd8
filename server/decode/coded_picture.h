// Decodes JPEG, PNG and WebP row by row, so that a call that has ended holds no thread. OpenCV's own decoders
// of these formats go on to their end.
#pragma once

#include <opencv2/core.hpp>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/decode/picture_header.h"
#include "server/decode/still_wanted.h"

namespace saccade::server {

// Thrown by the callbacks that libjpeg and libpng get, whose functions hold nothing that their caller does
// not free. Does not leave the functions below.
struct DecodingEnded {
  absl::Status status;
};

// Each returns the picture's pixels as 8-bit BGR, upright, as cv::imdecode() does with IMREAD_COLOR. Pixels
// that a damaged file does not describe are grey or black. REQUIRES: the format's reader of headers
// (picture_formats.h) accepted the bytes, of which it made `header`. INVALID_ARGUMENT if the picture cannot
// be decoded; std::bad_alloc and cv::Exception if there is no memory. `wanted`
// is asked between rows, and its error ends decoding.

// `reduction` is 1, 2, 4 or 8: the factor by which each side is shrunk.
absl::StatusOr<cv::Mat> DecodeJpeg(std::string_view bytes, int reduction, const StillWanted& wanted);
// Data beyond the last row are not decompressed.
absl::StatusOr<cv::Mat> DecodePng(std::string_view bytes, const PictureHeader& header,
                                  const StillWanted& wanted);
absl::StatusOr<cv::Mat> DecodeWebp(std::string_view bytes, const PictureHeader& header,
                                   const StillWanted& wanted);

}  // namespace saccade::server
