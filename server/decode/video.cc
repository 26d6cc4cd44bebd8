#include "server/decode/video.h"

#include "absl/strings/str_cat.h"
#include "server/decode/avi_chunks.h"
#include "server/decode/ffmpeg_video.h"
#include "server/decode/matroska_frames.h"
#include "server/decode/mp4_samples.h"
#include "server/pictures/opencv.h"
#include "server/pictures/picture_bytes.h"

namespace saccade::server {
namespace {

bool IsMp4(const PictureBytes& bytes) {
  // The size field of the ftyp box is below 16 MiB, so its first byte is zero; no text file starts with zero.
  // The brands avi*, he* and mif1 are those of still pictures.
  return bytes.u8(0) == 0 && bytes.tag(4, "ftyp") && !bytes.tag(8, "avi") && !bytes.tag(8, "he") &&
         !bytes.tag(8, "mif1");
}

bool IsMatroska(const PictureBytes& bytes) { return bytes.tag(0, "\x1A\x45\xDF\xA3"); }

// FFmpeg's name of the container that the first bytes are those of; null if there is none.
const char* ContainerOf(const PictureBytes& bytes) {
  if (IsMatroska(bytes)) return "matroska";
  if (bytes.tag(0, "RIFF") && bytes.tag(8, "AVI ")) return "avi";
  return IsMp4(bytes) ? "mov" : nullptr;
}

}  // namespace

bool IsVideo(std::string_view encoded) { return ContainerOf(PictureBytes(encoded)) != nullptr; }

absl::StatusOr<std::unique_ptr<Video>> Video::Open(std::string_view encoded, const DecodeLimits& limits,
                                                   const StillWanted& wanted) {
  const PictureBytes bytes(encoded);
  const char* const container = ContainerOf(bytes);
  if (container == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("not a readable video, ", encoded.size(),
                     " bytes long; accepted formats are MP4, MOV, Matroska, WebM and AVI"));
  }
  if (IsMp4(bytes)) {
    if (absl::Status few = CheckMp4Samples(encoded); !few.ok()) return few;
  } else if (IsMatroska(bytes)) {
    if (absl::Status few = CheckMatroskaFrames(encoded); !few.ok()) return few;
  } else if (absl::Status few = CheckAviChunks(encoded); !few.ok()) {
    return few;
  }
  return CatchExceptions("the video", [&] { return OpenWithFfmpeg(encoded, container, limits, wanted); });
}

}  // namespace saccade::server
