// Validates what a decode worker reports about a video. The worker is not trusted: a malicious file may have
// compromised it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "server/decode/workers/messages.h"
#include "server/pictures/picture_header.h"

namespace saccade::server {

// Whether a bool in a worker's reply is one: the worker may have sent any byte, which must not be read as a
// bool.
bool IsBool(const bool& value);

// The error of a reply that is not possible.
absl::Status BadReply();

// Not thread-safe.
class CheckedVideo {
 public:
  // `file_bytes` is the size of the file.
  CheckedVideo(size_t file_bytes, const DecodeLimits& limits) : file_bytes_(file_bytes), limits_(limits) {}

  // Accepts the report sent when the video was opened, and after each frame. INTERNAL, and the report is
  // dropped, if it is impossible: beyond the limits, less than before, another size than that of the first
  // frame, or more frames than the file has bytes.
  absl::Status Take(const WorkerVideo& reported);

  const WorkerVideo& now() const { return now_; }
  // At least the pixels of the frames that were shown, whatever the worker counts.
  int64_t decoded_pixels() const;

 private:
  const size_t file_bytes_;
  const DecodeLimits limits_;
  WorkerVideo now_;
  // Frames that were shown so far.
  int64_t frames_ = 0;
};

}  // namespace saccade::server
