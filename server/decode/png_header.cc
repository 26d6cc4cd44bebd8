#include "server/decode/picture_bytes.h"
#include "server/decode/picture_formats.h"

namespace saccade::server {
namespace {

constexpr size_t kSignature = 8;
// Bytes of a chunk in addition to its data: length, type, checksum.
constexpr size_t kChunkFrame = 12;
constexpr uint32_t kMaxNumber = 0x7FFFFFFF;

bool DepthFitsColour(uint32_t depth, uint32_t colour) {
  switch (colour) {
    case 0:
      return depth == 1 || depth == 2 || depth == 4 || depth == 8 || depth == 16;
    case 3:
      return depth == 1 || depth == 2 || depth == 4 || depth == 8;
    case 2:
    case 4:
    case 6:
      return depth == 8 || depth == 16;
    default:
      return false;
  }
}

}  // namespace

absl::StatusOr<PictureHeader> ReadPngHeader(std::string_view encoded) {
  const PictureBytes bytes(encoded);
  constexpr size_t kHeaderData = kSignature + 8;
  if (!bytes.has(kSignature, kChunkFrame + 13))
    return Truncated("PNG", bytes, "its header is longer than that");
  if (bytes.big32(kSignature) != 13 || !bytes.tag(kSignature + 4, "IHDR")) {
    return Broken("PNG", "it does not start with a header chunk (IHDR)");
  }
  const PictureHeader header{.format = PictureFormat::kPng,
                             .width = bytes.big32(kHeaderData),
                             .height = bytes.big32(kHeaderData + 4)};
  if (header.width == 0 || header.height == 0 || header.width > kMaxNumber || header.height > kMaxNumber) {
    return Broken("PNG", "its header gives a width or height outside of 1 to 2147483647");
  }
  if (!DepthFitsColour(bytes.u8(kHeaderData + 8), bytes.u8(kHeaderData + 9))) {
    return Broken("PNG", "its header gives a bit depth and colour type that do not exist together");
  }
  bool has_pixels = false;
  size_t at = kSignature + kChunkFrame + 13;
  for (;;) {
    const size_t length = bytes.big32(at);
    if (!bytes.has(at, kChunkFrame)) return Truncated("PNG", bytes, "its end chunk (IEND) is missing");
    if (length > kMaxNumber) return Broken("PNG", "a chunk is longer than the format allows");
    if (!bytes.has(at, kChunkFrame + length)) return Truncated("PNG", bytes, "they end inside a chunk");
    if (bytes.tag(at + 4, "IEND")) break;
    has_pixels = has_pixels || bytes.tag(at + 4, "IDAT");
    at += kChunkFrame + length;
  }
  if (!has_pixels) return Broken("PNG", "it holds no pixels (IDAT)");
  return header;
}

}  // namespace saccade::server
