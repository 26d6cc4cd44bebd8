#include "server/decode/matroska_frames.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"
#include "server/pictures/picture_bytes.h"

namespace saccade::server {
namespace {

// Frames have at least this many bytes, and pieces of sound too.
constexpr uint64_t kMinFrameBytes = 2;
// As for the samples of an MP4: a minute of uncompressed sound and video has about 3 million.
constexpr uint64_t kMaxFrames = uint64_t{4} << 20;
// Bytes that all frames of a track begin with and that are stored once. mkvmerge leaves out up to four.
constexpr uint64_t kMaxStrippedBytes = 64;

// Elements that contain other ones, and those that are looked at. The rest is skipped.
enum Element : uint32_t {
  kSegment = 0x18538067,
  kCluster = 0x1F43B675,
  kBlockGroup = 0xA0,
  kTracks = 0x1654AE6B,
  kTrack = 0xAE,
  kEncodings = 0x6D80,
  kEncoding = 0x6240,
  kCompression = 0x5034,
  kSimpleBlock = 0xA3,
  kBlock = 0xA1,
  kTrackType = 0x83,
  kCompressionMethod = 0x4254,
  kCompressionSettings = 0x4255,
  kCues = 0x1C53BB6B,
  kTags = 0x1254C367,
  kChapters = 0x1043A770,
};

// FFmpeg goes over such an element again and again: its parts are sorted, or compared with each other.
constexpr uint64_t kMaxDescriptionBytes = uint64_t{128} << 10;

constexpr uint64_t kPictures = 1;
constexpr uint64_t kHeaderStripping = 3;

bool IsContainer(uint32_t element) {
  switch (element) {
    case kSegment:
    case kCluster:
    case kBlockGroup:
    case kTracks:
    case kTrack:
    case kEncodings:
    case kEncoding:
    case kCompression:
      return true;
    default:
      return false;
  }
}

class FrameCounter {
 public:
  explicit FrameCounter(std::string_view bytes)
      : bytes_(bytes), max_frames_(std::min<uint64_t>(kMaxFrames, bytes.size() / kMinFrameBytes)) {}

  // Goes over the elements in the order of the file. Where containers end does not matter.
  absl::Status Count() {
    for (size_t at = 0; at < bytes_.size();) {
      const auto id = ReadNumber(at, /*keep_marker=*/true);
      if (!id) break;
      const auto size = ReadNumber(at, /*keep_marker=*/false);
      if (!size) break;
      const auto element = static_cast<uint32_t>(*id);
      const uint64_t length = std::min<uint64_t>(*size, bytes_.size() - at);
      if (absl::Status accepted = Look(element, at, length); !accepted.ok()) return accepted;
      if (!IsContainer(element)) at += length;
    }
    return EndTrack();
  }

 private:
  // A number whose first byte has as many leading zeros as bytes follow. Null if it is cut.
  std::optional<uint64_t> ReadNumber(size_t& at, bool keep_marker) const {
    const uint32_t first = bytes_.u8(at);
    const int more = std::countl_zero(static_cast<uint8_t>(first));
    const auto length = static_cast<size_t>(more) + 1;
    if (first == 0 || !bytes_.has(at, length)) return std::nullopt;
    uint64_t value = keep_marker ? first : first & (0x7Fu >> more);
    for (size_t i = 1; i < length; ++i) value = value << 8 | bytes_.u8(at + i);
    at += length;
    return value;
  }

  uint64_t Unsigned(size_t at, uint64_t length) const {
    uint64_t value = 0;
    for (uint64_t i = 0; i < std::min<uint64_t>(length, 8); ++i) value = value << 8 | bytes_.u8(at + i);
    return value;
  }

  absl::Status Look(uint32_t element, size_t at, uint64_t length) {
    switch (element) {
      case kSimpleBlock:
      case kBlock:
        frames_ += FramesOf(at);
        if (frames_ <= max_frames_) return absl::OkStatus();
        return absl::InvalidArgumentError(absl::StrCat(
            "the video cannot be read: its blocks have ", frames_, " frames or more; at most ", max_frames_,
            " are accepted in a file of ", bytes_.size(), " bytes, so split it or write it again"));
      case kTrack:
      case kCluster:
        return EndTrack();
      case kTrackType:
        has_pictures_ = Unsigned(at, length) == kPictures;
        return absl::OkStatus();
      case kCompression:
        // Without an element that names it, the method is zlib.
        is_compressed_ = true;
        return absl::OkStatus();
      case kCompressionMethod:
        is_compressed_ = Unsigned(at, length) != kHeaderStripping;
        return absl::OkStatus();
      case kCompressionSettings:
        if (length <= kMaxStrippedBytes) return absl::OkStatus();
        return absl::InvalidArgumentError(absl::StrCat(
            "the video cannot be read: ", length, " bytes are left out of each of its frames; at most ",
            kMaxStrippedBytes, " are accepted, so write it again"));
      case kCues:
      case kTags:
      case kChapters:
        if (length <= kMaxDescriptionBytes) return absl::OkStatus();
        return absl::InvalidArgumentError(absl::StrCat(
            "the video cannot be read: its cues, tags or chapters have ", length, " bytes; at most ",
            kMaxDescriptionBytes, " are accepted, so write it again without them"));
      default:
        return absl::OkStatus();
    }
  }

  // A block begins with the number of its track, two bytes of time and one of flags.
  uint64_t FramesOf(size_t at) const {
    constexpr size_t kTimeBytes = 2;
    constexpr uint32_t kLacing = 6;
    if (!ReadNumber(at, /*keep_marker=*/false)) return 1;
    at += kTimeBytes;
    return (bytes_.u8(at) & kLacing) == 0 ? 1 : uint64_t{bytes_.u8(at + 1)} + 1;
  }

  absl::Status EndTrack() {
    const bool is_accepted = !has_pictures_ || !is_compressed_;
    has_pictures_ = is_compressed_ = false;
    if (is_accepted) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "the video cannot be read: the container compresses its frames (ContentCompression), which is not "
        "accepted; write it again without that");
  }

  const PictureBytes bytes_;
  const uint64_t max_frames_;
  uint64_t frames_ = 0;
  // Whether the track that was begun last, and has not ended, has pictures, and whether they are compressed.
  bool has_pictures_ = false;
  bool is_compressed_ = false;
};

}  // namespace

absl::Status CheckMatroskaFrames(std::string_view bytes) { return FrameCounter(bytes).Count(); }

}  // namespace saccade::server
