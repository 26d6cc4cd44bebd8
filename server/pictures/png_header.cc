#include <string>

#include "server/pictures/picture_bytes.h"
#include "server/pictures/picture_formats.h"

namespace saccade::server {
namespace {

constexpr size_t kSignature = 8;
// Bytes of a chunk in addition to its data: length, type, checksum.
constexpr size_t kChunkFrame = 12;
constexpr uint32_t kMaxNumber = 0x7FFFFFFF;

// libpng decompresses texts and colour profiles, up to 8 MB each, and stores up to 1000 chunks. OpenCV reads
// the strings of EXIF data, each of which may claim all of it. A PNG with such chunks is decoded without
// them; so is one with more other chunks than programs write.
constexpr size_t kMaxExifBytes = size_t{64} << 10;
constexpr int kMaxSmallChunks = 16;

// The chunks of fixed size, which cost libpng nothing in addition to their bytes.
bool IsSmall(const PictureBytes& bytes, size_t at) {
  for (const char* type : {"gAMA", "cHRM", "sRGB", "sBIT", "bKGD", "hIST", "pHYs", "tIME"}) {
    if (bytes.tag(at + 4, type)) return true;
  }
  return false;
}

bool IsNeeded(const PictureBytes& bytes, size_t at) {
  for (const char* type : {"IHDR", "PLTE", "tRNS", "IDAT", "IEND"}) {
    if (bytes.tag(at + 4, type)) return true;
  }
  return bytes.tag(at + 4, "eXIf") && bytes.big32(at) <= kMaxExifBytes;
}

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

std::string WithoutExtraChunks(std::string_view encoded, const PictureHeader& header) {
  const PictureBytes bytes(encoded);
  std::string kept;
  kept.reserve(static_cast<size_t>(header.copied_bytes));
  kept.append(encoded.substr(0, kSignature));
  bool exif = false;
  for (size_t at = kSignature; bytes.has(at, kChunkFrame);) {
    const size_t length = kChunkFrame + bytes.big32(at);
    const bool again = exif && bytes.tag(at + 4, "eXIf");
    if (IsNeeded(bytes, at) && !again) kept.append(encoded.substr(at, length));
    exif = exif || bytes.tag(at + 4, "eXIf");
    if (bytes.tag(at + 4, "IEND")) break;
    at += length;
  }
  return kept;
}

absl::StatusOr<PictureHeader> ReadPngHeader(std::string_view encoded) {
  const PictureBytes bytes(encoded);
  constexpr size_t kHeaderData = kSignature + 8;
  if (!bytes.has(kSignature, kChunkFrame + 13))
    return Truncated("PNG", bytes, "its header is longer than that");
  if (bytes.big32(kSignature) != 13 || !bytes.tag(kSignature + 4, "IHDR")) {
    return Broken("PNG", "it does not start with a header chunk (IHDR)");
  }
  PictureHeader header{.format = PictureFormat::kPng,
                       .width = bytes.big32(kHeaderData),
                       .height = bytes.big32(kHeaderData + 4)};
  if (header.width == 0 || header.height == 0 || header.width > kMaxNumber || header.height > kMaxNumber) {
    return Broken("PNG", "its header gives a width or height outside of 1 to 2147483647");
  }
  if (!DepthFitsColour(bytes.u8(kHeaderData + 8), bytes.u8(kHeaderData + 9))) {
    return Broken("PNG", "its header gives a bit depth and colour type that do not exist together");
  }
  bool has_pixels = false;
  bool extra = false;
  int exifs = 0;
  int small = 0;
  size_t needed = kSignature + kChunkFrame + 13;
  size_t at = kSignature + kChunkFrame + 13;
  for (;;) {
    const size_t length = bytes.big32(at);
    if (!bytes.has(at, kChunkFrame)) return Truncated("PNG", bytes, "its end chunk (IEND) is missing");
    if (length > kMaxNumber) return Broken("PNG", "a chunk is longer than the format allows");
    if (!bytes.has(at, kChunkFrame + length)) return Truncated("PNG", bytes, "they end inside a chunk");
    if (bytes.tag(at + 4, "IEND")) {
      needed += kChunkFrame + length;
      break;
    }
    has_pixels = has_pixels || bytes.tag(at + 4, "IDAT");
    if (IsNeeded(bytes, at)) {
      needed += kChunkFrame + length;
      if (bytes.tag(at + 4, "eXIf") && ++exifs > 1) extra = true;
    } else if (!IsSmall(bytes, at) || ++small > kMaxSmallChunks) {
      extra = true;
    }
    at += kChunkFrame + length;
  }
  if (!has_pixels) return Broken("PNG", "it holds no pixels (IDAT)");
  if (extra) header.copied_bytes = static_cast<int64_t>(needed);
  return header;
}

}  // namespace saccade::server
