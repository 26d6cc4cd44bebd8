#include "server/decode/avi_chunks.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/decode/picture_bytes.h"

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

// Looks at every position before the frames, because FFmpeg goes on behind damaged chunks. In the frames
// themselves the same letters mean nothing.
absl::Status CheckHeaders(const PictureBytes& bytes) {
  for (size_t at = 0; at < bytes.size() && !IsList(bytes, at, "movi"); ++at) {
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
