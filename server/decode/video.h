// Reads a video file frame by frame with OpenCV.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/decode/prepare.h"

namespace saccade::server {

// True if the first bytes are those of MP4, MOV, Matroska, WebM or AVI.
bool IsVideo(std::string_view bytes);

// Not thread-safe; different videos may be read concurrently. Each uses one core.
class Video {
 public:
  // Copies `bytes` to an anonymous in-memory file, because OpenCV reads only files. Does not throw.
  // INVALID_ARGUMENT if the format is not one of the above, if it cannot be decoded, or if frames exceed
  // `limits`; RESOURCE_EXHAUSTED if out of memory.
  static absl::StatusOr<std::unique_ptr<Video>> Open(std::string_view bytes, const DecodeLimits& limits);

  virtual ~Video() = default;

  // As the file claims. The rate is positive; the count is 0 if the file does not state it.
  virtual double frames_per_second() const = 0;
  virtual int64_t claimed_frames() const = 0;
  virtual models::Size size() const = 0;

  // Advances to the next frame; false at the end of the video.
  virtual bool Skip() = 0;
  // Decodes the frame to which Skip() advanced. The result is valid until the next call of Skip() or Last().
  virtual absl::StatusOr<DecodedPicture> Last() = 0;
};

}  // namespace saccade::server
