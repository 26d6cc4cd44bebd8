// One header reader per picture format; see ReadPictureHeader.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "server/decode/picture_header.h"

namespace saccade::server {

// Each reader follows the file's structure from its first byte to its end and never reads beyond `bytes`.
// REQUIRES: the bytes start with the format's signature.
absl::StatusOr<PictureHeader> ReadJpegHeader(std::string_view bytes);
absl::StatusOr<PictureHeader> ReadPngHeader(std::string_view bytes);
absl::StatusOr<PictureHeader> ReadWebpHeader(std::string_view bytes);
absl::StatusOr<PictureHeader> ReadBmpHeader(std::string_view bytes);
// Reads the first page with libtiff, after its tags were checked.
absl::StatusOr<PictureHeader> ReadTiffHeader(std::string_view bytes, const DecodeLimits& limits);

// Width and height by the first frame header, which need not be in a whole JPEG. Null if there is none.
std::optional<std::pair<int64_t, int64_t>> JpegFrameSize(std::string_view bytes);

// Returns the PNG without the chunks that its pixels do not need. REQUIRES: ReadPngHeader accepted the bytes.
std::string WithoutExtraChunks(std::string_view png);

}  // namespace saccade::server
