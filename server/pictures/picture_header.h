// Reads format and size of a picture from its header, without decoding it.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace saccade::server {

struct DecodeLimits {
  // Maximum pixels of one picture, as its header claims. 64 Mi pixels take 192 MiB once decoded, and exceed
  // what cameras produce.
  int64_t max_pixels = int64_t{64} << 20;

  // Maximum bytes of one encoded or raw picture. --max-message-bytes already bounds what a client can send.
  int64_t max_bytes = int64_t{64} << 20;
};

enum class PictureFormat { kJpeg, kPng, kWebp, kTiff, kBmp, kRaw };

const char* FormatName(PictureFormat format);

struct PictureHeader {
  PictureFormat format = PictureFormat::kJpeg;
  // As stored; an EXIF orientation may swap them.
  int64_t width = 0;
  int64_t height = 0;
  // EXIF's, 1 to 8, of a JPEG, which may be shrunk while it is decoded. Other formats' is read with the
  // pixels.
  int orientation = 1;
  // Bytes of the file that decoding copies.
  int64_t copied_bytes = 0;
  // Whether the picture has more pixels than DecodeLimits allows, so that only regions of it can be decoded.
  // Its width and height are then those of the upright picture.
  bool by_regions = false;
  // Size of the file's own tiles, turned as the picture is, if it is read by regions. Each is decoded whole.
  int64_t tile_width = 0;
  int64_t tile_height = 0;

  int64_t pixels() const { return width * height; }
};

// INVALID_ARGUMENT, stating the picture's size and the limit, if there are too many pixels. REQUIRES: width
// and height are positive.
absl::Status CheckPixels(int64_t width, int64_t height, const DecodeLimits& limits);

// The largest side of a picture that is read by regions.
inline constexpr int64_t kMaxRegionalSide = int64_t{1} << 20;

// INVALID_ARGUMENT, saying what to ask for, if a picture can only be read by regions.
absl::Status CheckWhole(const PictureHeader& header);

// True if the first bytes are those of a TIFF, whose header a library reads; the others' are read by this
// code.
bool IsTiff(std::string_view bytes);

// True if the first bytes are those of a JPEG, PNG, WebP, TIFF or BMP, whether or not the rest can be read.
bool IsPicture(std::string_view bytes);
// Number of bytes that IsPicture() looks at.
inline constexpr int kPictureStartBytes = 12;

// Reads format and size, and follows the file's structure to its end. Allocates nothing in proportion to what
// the header claims. Thread-safe. INVALID_ARGUMENT states what was found: an empty or unknown file (with the
// name of a known format), a broken header, a variant that cannot be decoded, a truncated file (with the
// number of bytes received), or a size over the limits. A TIFF in tiles may be larger than max_pixels; its
// header has `by_regions`.
absl::StatusOr<PictureHeader> ReadPictureHeader(std::string_view bytes, const DecodeLimits& limits);

}  // namespace saccade::server
