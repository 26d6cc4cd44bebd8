// Bounds how often an HTTP/2 client may send frames that cost the server work and the client nothing.
#pragma once

#include <nghttp2/nghttp2.h>

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "server/http/http_limits.h"
#include "server/http/token_bucket.h"
#include "server/net/refusal.h"

namespace saccade::server {

// The frames of one connection. Not thread-safe. Times must not decrease.
class FrameBudget {
 public:
  explicit FrameBudget(const HttpLimits& limits);

  struct Verdict {
    // The refusal to be counted; none if the frame is within all bounds.
    std::optional<Refusal> refusal;
    // The client has sent too many such frames and has to be disconnected.
    bool disconnect = false;
  };
  // Judges a frame by its head. `is_full`: the connection has as many streams as it may have, so a frame that
  // opens another one is refused.
  Verdict Take(const nghttp2_frame_hd& frame, bool is_full, absl::Time now);

  // Judges a frame that nghttp2 has found to be invalid. Most of those end a stream, so they are bounded
  // together with the client's own resets.
  Verdict TakeInvalid(absl::Time now);

 private:
  TokenBucket resets_;
  TokenBucket control_frames_;
  TokenBucket window_updates_;
  TokenBucket refused_streams_;
  // The highest number of a stream that the client has opened.
  int32_t last_stream_ = 0;
};

}  // namespace saccade::server
