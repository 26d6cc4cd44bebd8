#include <utility>

#include "server/pictures/picture_bytes.h"
#include "server/pictures/picture_formats.h"
#include "server/pictures/upright.h"
#include "server/pictures/webp_lossless.h"

namespace saccade::server {
namespace {

// Bytes of a chunk in addition to its data: tag and length.
constexpr size_t kChunkFrame = 8;
constexpr uint32_t kAnimated = 2;

// The packed field stores width - 1 and height - 1 in 14 bits each.
PictureHeader Lossless(uint32_t packed) {
  return {
      .format = PictureFormat::kWebp, .width = (packed & 0x3FFF) + 1, .height = (packed >> 14 & 0x3FFF) + 1};
}

// Reads the chunk with the pixels; `at` is the position of its data.
absl::StatusOr<PictureHeader> ReadPixels(const PictureBytes& bytes, size_t at, size_t length, bool lossless) {
  if (length < (lossless ? 5 : 10)) return Broken("WebP", "its picture chunk is too short");
  if (lossless) {
    if (bytes.u8(at) != 0x2F) return Broken("WebP", "its lossless data lacks its signature");
    if (bytes.u8(at + 4) >> 5 != 0) return Broken("WebP", "its lossless data is of an unknown version");
    const PictureHeader header = Lossless(bytes.little32(at + 1));
    constexpr size_t kLosslessHeader = 5;
    const std::string_view data = bytes.part(at + kLosslessHeader, length - kLosslessHeader);
    if (absl::Status few = CheckWebpBlocks(data, header.width, header.height); !few.ok()) return few;
    return header;
  }
  if ((bytes.u8(at) & 1) != 0 || !bytes.tag(at + 3, "\x9D\x01\x2A")) {
    return Broken("WebP", "its lossy data does not start with a key frame");
  }
  const PictureHeader header{.format = PictureFormat::kWebp,
                             .width = bytes.little16(at + 6) & 0x3FFF,
                             .height = bytes.little16(at + 8) & 0x3FFF};
  if (header.width == 0 || header.height == 0)
    return Broken("WebP", "its header gives no width or no height");
  return header;
}

// Reads the chunk with the transparency; `at` is the position of its data.
absl::Status CheckAlpha(const PictureBytes& bytes, size_t at, size_t length, const PictureHeader& canvas) {
  constexpr uint32_t kCompression = 3;
  if (length < 1 || (bytes.u8(at) & kCompression) == 0) return absl::OkStatus();
  return CheckWebpBlocks(bytes.part(at + 1, length - 1), canvas.width, canvas.height);
}

}  // namespace

std::string_view WebpExif(std::string_view encoded) {
  constexpr size_t kExtended = kChunkFrame + 4;
  constexpr uint32_t kHasExif = 8;
  const PictureBytes all(encoded);
  const PictureBytes bytes(encoded.substr(0, kChunkFrame + size_t{all.little32(4)}));
  if (!bytes.tag(kExtended, "VP8X") || (bytes.u8(kExtended + kChunkFrame) & kHasExif) == 0) return {};
  for (size_t at = kExtended; bytes.has(at, kChunkFrame);) {
    const size_t data = at + kChunkFrame;
    const size_t length = bytes.little32(at + 4);
    if (!bytes.has(data, length)) return {};
    if (bytes.tag(at, "EXIF")) return WithoutExifName(bytes.part(data, length));
    at = data + length + length % 2;
  }
  return {};
}

absl::StatusOr<PictureHeader> ReadWebpHeader(std::string_view encoded) {
  const PictureBytes all(encoded);
  const size_t end = kChunkFrame + size_t{all.little32(4)};
  if (!all.has(0, end)) return Truncated("WebP", all, "its RIFF header claims more");
  const PictureBytes bytes(encoded.substr(0, end));
  PictureHeader canvas;
  bool transparent = false;
  for (size_t at = kChunkFrame + 4; bytes.has(at, kChunkFrame);) {
    const size_t data = at + kChunkFrame;
    const size_t length = bytes.little32(at + 4);
    if (!bytes.has(data, length)) return Truncated("WebP", bytes, "they end inside a chunk");
    const bool lossless = bytes.tag(at, "VP8L");
    if (lossless || bytes.tag(at, "VP8 ")) {
      absl::StatusOr<PictureHeader> header = ReadPixels(bytes, data, length, lossless);
      if (!header.ok() || canvas.width == 0) return header;
      if (header->width == canvas.width && header->height == canvas.height) return header;
      return Broken("WebP", "its canvas and its picture differ in size");
    }
    if (bytes.tag(at, "VP8X")) {
      if (length < 10) return Broken("WebP", "its extended header is too short");
      if ((bytes.u8(data) & kAnimated) != 0)
        return Broken("WebP", "it is an animation; send a single picture");
      canvas.width = bytes.little24(data + 4) + 1;
      canvas.height = bytes.little24(data + 7) + 1;
    }
    if (bytes.tag(at, "ALPH")) {
      if (std::exchange(transparent, true)) return Broken("WebP", "it has two chunks of transparency (ALPH)");
      if (absl::Status few = CheckAlpha(bytes, data, length, canvas); !few.ok()) return few;
    }
    at = data + length + length % 2;
  }
  return Broken("WebP", "it holds no pixels");
}

}  // namespace saccade::server
