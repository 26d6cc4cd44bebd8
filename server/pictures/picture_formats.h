// One header reader per picture format; see ReadPictureHeader.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/pictures/picture_header.h"

namespace saccade::server {

// Each reader follows the file's structure from its first byte to its end and never reads beyond `bytes`.
// REQUIRES: the bytes start with the format's signature.
absl::StatusOr<PictureHeader> ReadJpegHeader(std::string_view bytes);
absl::StatusOr<PictureHeader> ReadPngHeader(std::string_view bytes);
absl::StatusOr<PictureHeader> ReadWebpHeader(std::string_view bytes);
absl::StatusOr<PictureHeader> ReadBmpHeader(std::string_view bytes);
// Reads the first page with libtiff, after its tags were checked.
absl::StatusOr<PictureHeader> ReadTiffHeader(std::string_view bytes, const DecodeLimits& limits);

// The first frame header of a JPEG, which need not be whole.
struct JpegFrame {
  int64_t width = 0;
  int64_t height = 0;
  // The pixels come in one go, not in ever finer scans.
  bool is_sequential = true;
};
// Null if there is none.
std::optional<JpegFrame> JpegFrameOf(std::string_view bytes);
// The first EXIF data before the pixels; empty if there are none. libjpeg would keep every segment of their
// kind, and go over all of them for each one.
std::string_view JpegExif(std::string_view bytes);
// The first EXIF data of a WebP whose header says that it has some; empty if there are none.
std::string_view WebpExif(std::string_view bytes);

// Returns the PNG without the chunks that its pixels do not need, in at most header.copied_bytes. REQUIRES:
// ReadPngHeader made `header` of the bytes, with copied_bytes above 0.
std::string WithoutExtraChunks(std::string_view png, const PictureHeader& header);

}  // namespace saccade::server
