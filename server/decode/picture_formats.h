// One header reader per picture format; see ReadPictureHeader.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "server/decode/picture_header.h"

namespace saccade::server {

// Each reader follows the file's structure from its first byte to its end and never reads beyond `bytes`.
// REQUIRES: the bytes start with the format's signature.
absl::StatusOr<PictureHeader> ReadJpegHeader(std::string_view bytes);
absl::StatusOr<PictureHeader> ReadPngHeader(std::string_view bytes);
absl::StatusOr<PictureHeader> ReadWebpHeader(std::string_view bytes);
absl::StatusOr<PictureHeader> ReadBmpHeader(std::string_view bytes);
// Reads the first page with libtiff, which allocates at most as much as the file is long.
absl::StatusOr<PictureHeader> ReadTiffHeader(std::string_view bytes);

}  // namespace saccade::server
