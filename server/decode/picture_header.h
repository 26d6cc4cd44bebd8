// What a picture claims to be, read from its bytes without decoding anything.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace saccade::server {

struct DecodeLimits {
  // Of one picture, as its header claims. 64 Mi pixels are 192 MiB once decoded, and more than cameras make.
  int64_t max_pixels = int64_t{64} << 20;

  // Of one encoded or raw picture. What a client may send is bounded before by gRPC's message size.
  int64_t max_bytes = int64_t{64} << 20;
};

enum class PictureFormat { kJpeg, kPng, kWebp, kTiff, kBmp, kRaw };

const char* FormatName(PictureFormat format);

struct PictureHeader {
  PictureFormat format = PictureFormat::kJpeg;
  // As stored: an orientation in the EXIF data may swap them.
  int64_t width = 0;
  int64_t height = 0;

  int64_t pixels() const { return width * height; }
};

// INVALID_ARGUMENT, with both sizes, if there are too many. REQUIRES: width and height are positive.
absl::Status CheckPixels(int64_t width, int64_t height, const DecodeLimits& limits);

// Reads format and size and follows the file's structure to its end. Allocates nothing that depends on what
// the picture claims. Thread-safe. INVALID_ARGUMENT says what was found: nothing, another format (by name
// where it is known), a broken header, a kind that cannot be decoded, a file cut short (with the bytes that
// came), or a size over the limits.
absl::StatusOr<PictureHeader> ReadPictureHeader(std::string_view bytes, const DecodeLimits& limits);

}  // namespace saccade::server
