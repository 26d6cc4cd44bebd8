// Decodes JPEG, PNG, WebP and BMP row by row, so that a call that has ended holds no thread. OpenCV's own
// decoders of these formats go on to their end, and come with libraries for formats that are not read here.
#pragma once

#include <opencv2/core.hpp>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/pictures/picture_header.h"
#include "server/pictures/still_wanted.h"

namespace saccade::server {

// Thrown by the callbacks that libjpeg and libpng get, whose functions hold nothing that their caller does
// not free. Does not leave the functions below.
struct DecodingEnded {
  absl::Status status;
};

// Each returns the picture's pixels as 8-bit BGR, upright, as cv::imdecode() does with IMREAD_COLOR. Pixels
// that a damaged file does not describe are grey or black. REQUIRES: the format's reader of headers
// (picture_formats.h) accepted the bytes, of which it made `header`. INVALID_ARGUMENT if the picture cannot
// be decoded; std::bad_alloc and cv::Exception if there is no memory. `wanted` is asked between rows, and its
// error ends decoding.

// `reduction` is 1, 2, 4 or 8: the factor by which each side is shrunk. The orientation is the header's.
absl::StatusOr<cv::Mat> DecodeJpeg(std::string_view bytes, const PictureHeader& header, int reduction,
                                   const StillWanted& wanted);
// Data beyond the last row are not decompressed.
absl::StatusOr<cv::Mat> DecodePng(std::string_view bytes, const PictureHeader& header,
                                  const StillWanted& wanted);
absl::StatusOr<cv::Mat> DecodeWebp(std::string_view bytes, const PictureHeader& header,
                                   const StillWanted& wanted);
// Colours of more or fewer than 8 bits become the nearest with 8; OpenCV rounds them down.
absl::StatusOr<cv::Mat> DecodeBmp(std::string_view bytes, const StillWanted& wanted);

// The values of a grey PNG, 8 or 16 bits each, as they are stored. INVALID_ARGUMENT if the bytes are no grey
// PNG of this size; RESOURCE_EXHAUSTED if there is no memory. Does not throw.
absl::StatusOr<cv::Mat> ReadGreyPng(std::string_view bytes, int64_t width, int64_t height);
// The same for a grey PNG or one with a palette, whose values are the palette's indices. Values of fewer than
// 8 bits are not scaled: those of 1 bit are 0 and 1.
absl::StatusOr<cv::Mat> ReadPngNumbers(std::string_view bytes, int64_t width, int64_t height);

}  // namespace saccade::server
