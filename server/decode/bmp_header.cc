#include <cstdlib>

#include "server/decode/picture_bytes.h"
#include "server/decode/picture_formats.h"

namespace saccade::server {
namespace {

constexpr size_t kFileHeader = 14;
constexpr uint32_t kCoreHeader = 12;
constexpr uint32_t kInfoHeader = 40;
constexpr uint32_t kPlain = 0;
constexpr uint32_t kBitFields = 3;
// Keeps every product below within 64 bits; no decoder accepts larger sides.
constexpr int64_t kMaxSide = int64_t{1} << 24;

bool IsDepth(int64_t bits) {
  return bits == 1 || bits == 4 || bits == 8 || bits == 16 || bits == 24 || bits == 32;
}

}  // namespace

absl::StatusOr<PictureHeader> ReadBmpHeader(std::string_view encoded) {
  const PictureBytes bytes(encoded);
  if (!bytes.has(kFileHeader, 4)) return Truncated("BMP", bytes, "its header is longer than that");
  const uint32_t header_size = bytes.little32(kFileHeader);
  if (header_size != kCoreHeader && header_size < kInfoHeader)
    return Broken("BMP", "its header has an unknown size");
  if (!bytes.has(kFileHeader, header_size)) return Truncated("BMP", bytes, "its header is longer than that");
  const bool core = header_size == kCoreHeader;
  PictureHeader header{.format = PictureFormat::kBmp};
  header.width = core ? bytes.little16(18) : int64_t{static_cast<int32_t>(bytes.little32(18))};
  // A negative height means that rows are stored from top to bottom.
  header.height = core ? bytes.little16(20) : std::abs(int64_t{static_cast<int32_t>(bytes.little32(22))});
  if (header.width < 1 || header.height < 1) return Broken("BMP", "its header gives no width or no height");
  if (header.width > kMaxSide || header.height > kMaxSide)
    return Broken("BMP", "its header gives a width or height above 2^24");
  const int64_t depth = core ? bytes.little16(24) : bytes.little16(28);
  if (!IsDepth(depth))
    return Broken("BMP", "its header gives an invalid bit depth; expected 1, 4, 8, 16, 24 or 32");
  const uint32_t compression = core ? kPlain : bytes.little32(30);
  if (compression != kPlain && compression != kBitFields) {
    return Broken("BMP", "it is compressed; send it uncompressed, or as PNG");
  }
  const int64_t row_bytes = (header.width * depth + 31) / 32 * 4;
  if (!bytes.has(bytes.little32(10), static_cast<size_t>(row_bytes * header.height))) {
    return Truncated("BMP", bytes, "its width and height require more");
  }
  return header;
}

}  // namespace saccade::server
