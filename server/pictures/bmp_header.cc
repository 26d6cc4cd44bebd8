#include <bit>
#include <cstdlib>
#include <optional>

#include "server/pictures/bmp_layout.h"
#include "server/pictures/picture_bytes.h"
#include "server/pictures/picture_formats.h"

namespace saccade::server {
namespace {

constexpr size_t kFileHeader = 14;
constexpr uint32_t kCoreHeader = 12;
constexpr uint32_t kInfoHeader = 40;
// Behind the fields of the information header, as part of a longer header or of no header.
constexpr size_t kMasks = kFileHeader + kInfoHeader;
constexpr size_t kMaskBytes = 12;
constexpr size_t kMaskBytesWithAlpha = 16;
constexpr uint32_t kPlain = 0;
constexpr uint32_t kBitFields = 3;
constexpr uint32_t kAlphaBitFields = 6;
// Keeps every product below within 64 bits; no decoder accepts larger sides.
constexpr int64_t kMaxSide = int64_t{1} << 24;

bool IsDepth(int64_t bits) {
  return bits == 1 || bits == 4 || bits == 8 || bits == 16 || bits == 24 || bits == 32;
}

// Null if the mask's bits are not side by side.
std::optional<BmpChannel> ChannelOf(uint32_t mask) {
  if (mask == 0) return BmpChannel{};
  const BmpChannel channel{.shift = static_cast<unsigned>(std::countr_zero(mask)),
                           .bits = static_cast<unsigned>(std::popcount(mask))};
  return mask >> channel.shift == ~uint32_t{0} >> (32 - channel.bits) ? std::optional(channel) : std::nullopt;
}

// Reads the masks, which take `mask_bytes`. A fourth mask, of opacity, is not used.
absl::Status ReadMasks(const PictureBytes& bytes, size_t mask_bytes, BmpLayout& layout) {
  if (layout.depth != 16 && layout.depth != 32)
    return Broken("BMP", "it has masks of colours, which only 16 or 32 bits a pixel can have");
  if (!bytes.has(kMasks, mask_bytes)) return Truncated("BMP", bytes, "its header is longer than that");
  uint32_t all = 0;
  for (size_t i = 0; i < layout.channels.size(); ++i) {
    // Stored in the order red, green, blue.
    const uint32_t mask = bytes.little32(kMasks + 4 * (layout.channels.size() - 1 - i));
    const std::optional<BmpChannel> channel = ChannelOf(mask);
    if (!channel || (mask & all) != 0)
      return Broken("BMP", "the bits of a colour's mask are not side by side, or belong to two colours");
    all |= mask;
    layout.channels[i] = *channel;
  }
  if (all == 0) return Broken("BMP", "its masks of colours are empty");
  if (layout.depth < 32 && all >> layout.depth != 0)
    return Broken("BMP", "its masks of colours have more bits than a pixel");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BmpLayout> ReadBmpLayout(std::string_view encoded) {
  const PictureBytes bytes(encoded);
  if (!bytes.has(kFileHeader, 4)) return Truncated("BMP", bytes, "its header is longer than that");
  const uint32_t header_size = bytes.little32(kFileHeader);
  if (header_size != kCoreHeader && header_size < kInfoHeader)
    return Broken("BMP", "its header has an unknown size");
  if (!bytes.has(kFileHeader, header_size)) return Truncated("BMP", bytes, "its header is longer than that");
  const bool core = header_size == kCoreHeader;
  BmpLayout layout;
  layout.palette_at = kFileHeader + header_size;
  layout.palette_entry_bytes = core ? 3 : 4;
  layout.width = core ? bytes.little16(18) : int64_t{static_cast<int32_t>(bytes.little32(18))};
  const int64_t height = core ? bytes.little16(20) : int64_t{static_cast<int32_t>(bytes.little32(22))};
  // A negative height means that rows are stored from top to bottom.
  layout.height = std::abs(height);
  layout.is_bottom_up = height > 0;
  if (layout.width < 1 || layout.height < 1) return Broken("BMP", "its header gives no width or no height");
  if (layout.width > kMaxSide || layout.height > kMaxSide)
    return Broken("BMP", "its header gives a width or height above 2^24");
  layout.depth = core ? bytes.little16(24) : bytes.little16(28);
  if (!IsDepth(layout.depth))
    return Broken("BMP", "its header gives an invalid bit depth; expected 1, 4, 8, 16, 24 or 32");
  const uint32_t compression = core ? kPlain : bytes.little32(30);
  const bool has_alpha_mask = compression == kAlphaBitFields;
  if (compression != kPlain && compression != kBitFields && !has_alpha_mask) {
    return Broken("BMP", "it is compressed; send it uncompressed, or as PNG");
  }
  if (compression != kPlain) {
    const size_t mask_bytes = has_alpha_mask ? kMaskBytesWithAlpha : kMaskBytes;
    if (absl::Status masks = ReadMasks(bytes, mask_bytes, layout); !masks.ok()) return masks;
  } else if (layout.depth == 16) {
    layout.channels = {BmpChannel{.shift = 0, .bits = 5}, {.shift = 5, .bits = 5}, {.shift = 10, .bits = 5}};
  } else {
    layout.channels = {BmpChannel{.shift = 0, .bits = 8}, {.shift = 8, .bits = 8}, {.shift = 16, .bits = 8}};
  }
  if (layout.depth <= 8) {
    const size_t colours = size_t{1} << layout.depth;
    const uint32_t used = core ? 0 : bytes.little32(46);
    layout.palette_entries = used == 0 || used > colours ? colours : used;
  }
  layout.pixels_at = bytes.little32(10);
  layout.row_bytes = static_cast<size_t>((layout.width * layout.depth + 31) / 32 * 4);
  if (!bytes.has(layout.pixels_at, layout.row_bytes * static_cast<size_t>(layout.height))) {
    return Truncated("BMP", bytes, "its width and height require more");
  }
  return layout;
}

absl::StatusOr<PictureHeader> ReadBmpHeader(std::string_view bytes) {
  const absl::StatusOr<BmpLayout> layout = ReadBmpLayout(bytes);
  if (!layout.ok()) return layout.status();
  return PictureHeader{.format = PictureFormat::kBmp, .width = layout->width, .height = layout->height};
}

}  // namespace saccade::server
