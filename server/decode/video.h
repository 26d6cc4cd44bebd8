// A video file, frame by frame, with OpenCV's reader.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/decode/prepare.h"

namespace saccade::server {

// By the file's first bytes: MP4 and MOV, Matroska and WebM, AVI.
bool IsVideo(std::string_view bytes);

// Not thread-safe; several may be read at once, each on one core.
class Video {
 public:
  // Copies the file into one without a name, as OpenCV reads files alone. Throws nothing. INVALID_ARGUMENT if
  // it is none of ours, or nothing in it can be decoded; RESOURCE_EXHAUSTED if memory ran out.
  static absl::StatusOr<std::unique_ptr<Video>> Open(std::string_view bytes, const DecodeLimits& limits);

  virtual ~Video() = default;

  // As the file claims. The rate is positive; the count is 0 if the file does not say.
  virtual double frames_per_second() const = 0;
  virtual int64_t claimed_frames() const = 0;
  virtual models::Size size() const = 0;

  // Passes over a frame; false at the end of the video.
  virtual bool Skip() = 0;
  // The frame that Skip passed over last; it is valid until the next call of either.
  virtual absl::StatusOr<DecodedPicture> Last() = 0;
};

}  // namespace saccade::server
