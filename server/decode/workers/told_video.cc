#include "server/decode/workers/told_video.h"

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

absl::Status ToldVideo::Take(const WorkerVideo& told) {
  if (!(told.frames_per_second > 0 && told.frames_per_second <= kMaxFramesPerSecond) ||
      told.claimed_frames < 0 || told.width < 1 || told.height < 1 ||
      std::max(told.width, told.height) > kMaxSide || told.width > limits_.max_pixels / told.height ||
      told.memory_bytes < 0 || told.memory_bytes > int64_t{1024} * MaxAllocatedPixels(limits_) ||
      told.decoded_pixels < now_.decoded_pixels || !IsBool(told.has_frame))
    return BadReply();
  if (frames_ > 0 && (told.width != now_.width || told.height != now_.height)) return BadReply();
  // Each frame takes at least a byte of the file.
  if (told.has_frame && frames_ >= static_cast<int64_t>(file_bytes_)) return BadReply();
  frames_ += told.has_frame ? 1 : 0;
  now_ = told;
  return absl::OkStatus();
}

int64_t ToldVideo::decoded_pixels() const {
  return std::max(now_.decoded_pixels, frames_ * now_.width * now_.height);
}

}  // namespace saccade::server
