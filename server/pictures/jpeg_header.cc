#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/pictures/picture_bytes.h"
#include "server/pictures/picture_formats.h"
#include "server/pictures/upright.h"

namespace saccade::server {
namespace {

constexpr uint32_t kStartOfPicture = 0xD8;
constexpr uint32_t kEndOfPicture = 0xD9;
constexpr uint32_t kStartOfScan = 0xDA;
constexpr uint32_t kTemporary = 0x01;
// Frames up to this one are sequential, in Huffman's code.
constexpr uint32_t kExtendedSequential = 0xC1;

// A decoder goes over all blocks of the picture in every scan, even if the scan is a few bytes long. 1 Gi
// pixels are 16 scans of the largest picture that is accepted by default, and 100 scans of 10 million pixels.
// Encoders write about ten scans.
constexpr int64_t kMaxScannedPixels = int64_t{1} << 30;
// Bounds the scans of small pictures, since each scan also has a cost of its own. Encoders that search for
// the best division into scans stay below 100.
constexpr int64_t kMaxScans = 500;

// Arithmetic decoding goes on where a scan's data end, and then costs as much as that many other scans.
constexpr int64_t kCostOfArithmetic = 20;

bool IsRestart(uint32_t marker) { return marker >= 0xD0 && marker <= 0xD7; }

// C0 to CF, except Huffman tables (C4), a reserved marker (C8) and arithmetic conditioning (CC).
bool IsStartOfFrame(uint32_t marker) {
  return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
}

// `at` is the position of the segment's length field.
absl::StatusOr<PictureHeader> ReadFrame(const PictureBytes& bytes, size_t at, uint32_t marker) {
  const uint32_t mode = marker & 3;  // 0 and 1 sequential, 2 progressive, 3 lossless
  const bool differential = (marker & 4) != 0;
  if (mode == 3) return Broken("JPEG", "it is lossless JPEG; send baseline or progressive JPEG");
  if (differential) return Broken("JPEG", "it is hierarchical JPEG; send baseline or progressive JPEG");
  if (bytes.u8(at + 2) != 8) return Broken("JPEG", "its samples do not have 8 bits; send 8-bit JPEG, or PNG");
  const PictureHeader header{
      .format = PictureFormat::kJpeg, .width = bytes.big16(at + 5), .height = bytes.big16(at + 3)};
  const uint32_t components = bytes.u8(at + 7);
  if (components != 1 && components != 3 && components != 4) {
    return Broken("JPEG",
                  "it has an unsupported number of components; expected 1 (grey), 3 (colour) or 4 (CMYK)");
  }
  if (header.width == 0 || header.height == 0)
    return Broken("JPEG", "its header gives no width or no height");
  return header;
}

absl::Status CheckScans(const PictureHeader& header, bool is_arithmetic, int64_t scans) {
  const int64_t cost = header.pixels() * (is_arithmetic ? kCostOfArithmetic : 1);
  const int64_t max_scans = std::min(kMaxScans, std::max<int64_t>(1, kMaxScannedPixels / cost));
  if (scans <= max_scans) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the JPEG picture has more than ", max_scans, " scans; a picture of ", header.width, " x ",
                   header.height, " pixels may have at most that many, so save it again as baseline JPEG"));
}

struct Segment {
  uint32_t marker = 0;
  // The position of its length field.
  size_t at = 0;
};

// The first segment that is wanted, by its marker and the position of its length field. Null if there is
// none.
template <typename IsWanted>
std::optional<Segment> FindSegment(const PictureBytes& bytes, IsWanted is_wanted) {
  for (size_t at = 2;;) {
    at = bytes.find('\xFF', at);
    while (bytes.has(at, 1) && bytes.u8(at) == 0xFF) ++at;
    const uint32_t marker = bytes.u8(at++);
    if (!bytes.has(at, 2) || marker == kEndOfPicture) return std::nullopt;
    if (marker == 0 || marker == kTemporary || marker == kStartOfPicture || IsRestart(marker)) continue;
    if (is_wanted(marker, at)) return Segment{marker, at};
    at += bytes.big16(at);
  }
}

// Returns the position of the FF of the first marker that does not belong to the scan around `at`.
size_t SkipScan(const PictureBytes& bytes, size_t at) {
  for (;; at += 2) {
    at = bytes.find('\xFF', at);
    if (at == bytes.size()) return at;
    const uint32_t next = bytes.u8(at + 1);
    if (bytes.has(at + 1, 1) && next != 0 && !IsRestart(next)) return at;
  }
}

}  // namespace

std::optional<JpegFrame> JpegFrameOf(std::string_view encoded) {
  const PictureBytes bytes(encoded);
  const auto frame = FindSegment(bytes, [](uint32_t marker, size_t) { return IsStartOfFrame(marker); });
  if (!frame) return std::nullopt;
  return JpegFrame{.width = bytes.big16(frame->at + 5),
                   .height = bytes.big16(frame->at + 3),
                   .is_sequential = frame->marker <= kExtendedSequential};
}

std::string_view JpegExif(std::string_view encoded) {
  constexpr uint32_t kApp1 = 0xE1;
  const PictureBytes bytes(encoded);
  const auto exif = FindSegment(bytes, [&](uint32_t marker, size_t at) {
    return marker == kStartOfScan || (marker == kApp1 && bytes.tag(at + 2, kExifName));
  });
  if (!exif || exif->marker == kStartOfScan) return {};
  const size_t length = bytes.big16(exif->at), head = 2 + kExifName.size();
  return length >= head && bytes.has(exif->at, length) ? bytes.part(exif->at + head, length - head)
                                                       : std::string_view();
}

// A thumbnail is a whole JPEG inside a segment. Segments are skipped by their length, so its markers are
// never mistaken for the picture's.
absl::StatusOr<PictureHeader> ReadJpegHeader(std::string_view encoded) {
  const PictureBytes bytes(encoded);
  PictureHeader header;
  bool is_arithmetic = false;
  int64_t scans = 0;
  size_t at = 2;
  for (;;) {
    // Decoders skip bytes between segments, and any number of FF bytes may precede a marker.
    at = bytes.find('\xFF', at);
    while (bytes.has(at, 1) && bytes.u8(at) == 0xFF) ++at;
    if (!bytes.has(at, 1)) return Truncated("JPEG", bytes, "its end marker is missing");
    const uint32_t marker = bytes.u8(at++);
    if (marker == kEndOfPicture) break;
    if (marker == 0 || marker == kTemporary || IsRestart(marker)) continue;
    if (marker == kStartOfPicture) return Broken("JPEG", "another picture starts inside it");
    const size_t length = bytes.big16(at);
    if (!bytes.has(at, 2) || !bytes.has(at, length)) {
      return Truncated("JPEG", bytes, "they end inside a segment");
    }
    if (length < 2) return Broken("JPEG", "a segment is shorter than its own length field");
    if (IsStartOfFrame(marker)) {
      if (header.width != 0) return Broken("JPEG", "it has two frame headers");
      if (length < 8) return Broken("JPEG", "its frame header is too short");
      absl::StatusOr<PictureHeader> frame = ReadFrame(bytes, at, marker);
      if (!frame.ok()) return frame;
      header = *frame;
      is_arithmetic = (marker & 8) != 0;
    }
    at += length;
    if (marker == kStartOfScan) {
      if (header.width == 0) return Broken("JPEG", "its pixels come before its frame header");
      if (absl::Status few = CheckScans(header, is_arithmetic, ++scans); !few.ok()) return few;
      at = SkipScan(bytes, at);
    }
  }
  if (scans == 0) return Broken("JPEG", "it holds no pixels");
  header.orientation = ExifOrientation(JpegExif(encoded));
  return header;
}

}  // namespace saccade::server
