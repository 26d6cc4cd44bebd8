#include "server/decode/workers/checked_video.h"

#include <algorithm>
#include <cstring>

#include "server/decode/video.h"

namespace saccade::server {
namespace {

constexpr int64_t kMaxSide = int64_t{1} << 24;

}  // namespace

bool IsBool(const bool& value) {
  unsigned char byte = 0;
  static_assert(sizeof(value) == sizeof(byte));
  std::memcpy(&byte, &value, sizeof(byte));
  return byte <= 1;
}

absl::Status BadReply() { return absl::InternalError("a decode worker's answer makes no sense"); }

absl::Status CheckedVideo::Take(const WorkerVideo& reported) {
  if (!(reported.frames_per_second > 0 && reported.frames_per_second <= kMaxFramesPerSecond) ||
      reported.claimed_frames < 0 || reported.width < 1 || reported.height < 1 ||
      std::max(reported.width, reported.height) > kMaxSide ||
      reported.width > limits_.max_pixels / reported.height || reported.memory_bytes < 0 ||
      reported.memory_bytes > int64_t{1024} * MaxAllocatedPixels(limits_) ||
      reported.decoded_pixels < now_.decoded_pixels || !IsBool(reported.has_frame))
    return BadReply();
  if (frames_ > 0 && (reported.width != now_.width || reported.height != now_.height)) return BadReply();
  // Each frame takes at least a byte of the file.
  if (reported.has_frame && frames_ >= static_cast<int64_t>(file_bytes_)) return BadReply();
  frames_ += reported.has_frame ? 1 : 0;
  now_ = reported;
  return absl::OkStatus();
}

int64_t CheckedVideo::decoded_pixels() const {
  return std::max(now_.decoded_pixels, frames_ * now_.width * now_.height);
}

}  // namespace saccade::server
