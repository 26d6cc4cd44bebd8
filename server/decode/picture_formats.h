// One reader per picture format; see ReadPictureHeader.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "server/decode/picture_header.h"

namespace saccade::server {

// Each follows the file from its first byte to its end and reads no byte beyond `bytes`.
// REQUIRES: the bytes start with the format's signature.
absl::StatusOr<PictureHeader> ReadJpegHeader(std::string_view bytes);
absl::StatusOr<PictureHeader> ReadPngHeader(std::string_view bytes);
absl::StatusOr<PictureHeader> ReadWebpHeader(std::string_view bytes);
absl::StatusOr<PictureHeader> ReadBmpHeader(std::string_view bytes);
// Of its first page, by libtiff, which allocates no more for it than the file is long.
absl::StatusOr<PictureHeader> ReadTiffHeader(std::string_view bytes);

}  // namespace saccade::server
