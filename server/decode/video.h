// Reads a video file frame by frame with FFmpeg.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/decode/prepare.h"
#include "server/pictures/still_wanted.h"

namespace saccade::server {

// Maximum pixels that a decoder allocates for a frame: more than `limits` allow, because it rounds sides up
// to whole blocks.
constexpr int64_t MaxAllocatedPixels(const DecodeLimits& limits) {
  return 2 * limits.max_pixels + (int64_t{1} << 16);
}

inline constexpr double kMaxFramesPerSecond = 1000;

// True if the first bytes are those of MP4, MOV, Matroska, WebM or AVI.
bool IsVideo(std::string_view bytes);

// Not thread-safe; different videos may be read concurrently. Each uses one core.
class Video {
 public:
  // Reads the header; `bytes` must outlive the result. Decodes nothing, and does not throw. INVALID_ARGUMENT
  // if the format or the codec is not accepted, if the file cannot be decoded, if its tables or blocks claim
  // more than it holds, or if its frames exceed `limits`; RESOURCE_EXHAUSTED if out of memory. `wanted` is
  // copied, and asked by Skip() before each of the file's frames.
  static absl::StatusOr<std::unique_ptr<Video>> Open(std::string_view bytes, const DecodeLimits& limits,
                                                     const StillWanted& wanted = nullptr);

  virtual ~Video() = default;

  // As the file claims. The rate is positive; the count is 0 if the file does not state it.
  virtual double frames_per_second() const = 0;
  virtual int64_t claimed_frames() const = 0;
  // Size of the upright frames: as the file claims, and once Skip() returned true as they are.
  virtual models::Size size() const = 0;
  // Maximum bytes of the frames that the decoder holds at once. Skip() may raise it at the first frame of a
  // format with more bytes for each pixel.
  virtual int64_t memory_bytes() const = 0;

  // Pixels of all frames that were decoded so far, also of those that are not shown.
  virtual int64_t decoded_pixels() const = 0;

  // Decodes the next frame that is shown; false at the end of the video, and at a frame that is damaged,
  // larger than the file's header claims, or larger than the limits.
  virtual bool Skip() = 0;
  // Why Skip() returned false: OK at the end of the video and at damage; INVALID_ARGUMENT if a frame is too
  // large, if too many are not shown, or if the container has far more of them than bytes; else an error
  // whose reason lies outside of the video.
  virtual absl::Status status() const = 0;
  // Converts the frame to which Skip() advanced. The result is valid until the next call of Skip() or Last().
  virtual absl::StatusOr<DecodedPicture> Last() = 0;
};

}  // namespace saccade::server
