#include "server/decode/avi_chunks.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/pictures/picture_bytes.h"

namespace saccade::server {
namespace {

constexpr uint64_t kMaxInfoBytes = uint64_t{64} << 10;

bool IsList(const PictureBytes& bytes, size_t at, std::string_view kind) {
  return bytes.tag(at, "LIST") && bytes.tag(at + 8, kind);
}

absl::Status CheckTexts(const PictureBytes& bytes) {
  uint64_t texts = 0;
  for (size_t at = bytes.find('L', 0); at < bytes.size(); at = bytes.find('L', at + 1)) {
    if (IsList(bytes, at, "INFO")) texts += bytes.little32(at + 4);
  }
  if (texts <= kMaxInfoBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the video cannot be read: its texts (INFO) have ", texts,
                                                 " bytes; at most ", kMaxInfoBytes,
                                                 " are accepted, so write it again without them"));
}

// Where the frames begin (LIST movi), from chunk to chunk as FFmpeg goes: it reads lists of texts whole, and
// goes into other lists. The file's end if a chunk is longer than the file, or if there are no frames.
size_t BeginOfFrames(const PictureBytes& bytes) {
  constexpr size_t kListHeader = 12;
  constexpr size_t kChunkHeader = 8;
  constexpr size_t kBitmapHeader = 40;
  constexpr size_t kShortestSound = 14;
  size_t list_end = 0;
  bool is_sound = false;
  for (size_t at = kListHeader; bytes.has(at, kListHeader);) {
    if (IsList(bytes, at, "movi")) return at;
    if (bytes.tag(at, "LIST")) list_end = at + kChunkHeader + bytes.little32(at + 4);
    if (bytes.tag(at, "LIST") && !IsList(bytes, at, "INFO") && !IsList(bytes, at, "ncdt")) {
      at += kListHeader;
      continue;
    }
    const size_t size = bytes.little32(at + 4);
    const size_t begin = at + kChunkHeader;
    const auto is_here = [&](const char* type) { return bytes.tag(at, type); };
    if (is_here("strh")) is_sound = bytes.tag(begin, "auds");
    // FFmpeg does not go on behind these where this walk would, so all of the file is checked.
    constexpr const char* kUnpadded[] = {"avih", "amvh", "strh", "indx", "vprp"};
    const bool is_odd = (size & 1) != 0 && std::any_of(std::begin(kUnpadded), std::end(kUnpadded), is_here);
    // It cuts these to their list.
    const bool is_cut = (is_here("strf") || is_here("strd")) && begin < list_end && size > list_end - begin;
    // Formats of sound are short. Of format 0x0165 it may read less than the chunk.
    const bool is_whole_sound =
        is_sound && size >= kShortestSound && (size & 1) == 0 && bytes.little16(begin) != 0x0165;
    const bool is_subtitle = bytes.tag(begin + 16, "DXSA") || bytes.tag(begin + 16, "DXSB");
    const bool is_short = is_here("strf") && !is_whole_sound && (size < kBitmapHeader || is_subtitle);
    if (is_odd || is_cut || is_short || !bytes.has(begin, size)) break;
    at += kChunkHeader + size + (size & 1);
  }
  return bytes.size();
}

// Looks at every position before the frames, because FFmpeg goes on behind damaged chunks. In the frames
// themselves the same letters mean nothing.
absl::Status CheckHeaders(const PictureBytes& bytes) {
  const size_t frames = BeginOfFrames(bytes);
  for (size_t at = 0; at < frames; ++at) {
    if (!bytes.tag(at, "strn") && !bytes.tag(at, "strf") && !bytes.tag(at, "strd")) continue;
    const uint64_t claimed = bytes.little32(at + 4);
    if (bytes.has(at + 8, claimed)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "the video cannot be read: a chunk of its header (", std::string(bytes.part(at, 4)), ") claims ",
        claimed, " bytes, which a file of ", bytes.size(), " bytes cannot hold; send the whole file"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckAviChunks(std::string_view encoded) {
  const PictureBytes bytes(encoded);
  if (absl::Status few = CheckTexts(bytes); !few.ok()) return few;
  return CheckHeaders(bytes);
}

}  // namespace saccade::server
