// Bounds how often an HTTP/2 client may send frames that cost the server work and the client nothing.
#pragma once

#include <nghttp2/nghttp2.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "server/http/http_limits.h"
#include "server/http/token_bucket.h"
#include "server/net/refusal.h"

namespace saccade::server {

// The frames of one connection. Not thread-safe. Times must not decrease.
//
// Frames are late if their stream has ended: nghttp2 ignores them. A client sends some before it hears that
// the server has ended a stream, at most what it was allowed to send (ExpectLate()), so these are not
// bounded.
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

  // Whether the client has not opened a stream of this number, or a higher one.
  bool IsNew(int32_t stream) const { return stream > last_stream_; }

  // Judges a DATA frame with padding, once all of it was read: it may have no content.
  Verdict TakePaddedData(const nghttp2_data& frame, absl::Time now);

  // Judges an invalid frame, or a body that breaks its stream's rules: the server has to reset the stream.
  // Bounded together with the client's own resets.
  Verdict TakeProvokedReset(absl::Time now);

  // Says that the head which Take() has judged last is of use. Otherwise the next call of Take() judges it as
  // a late one.
  void UseHead() { unused_head_.reset(); }

  // Judges DATA frames that nghttp2 has ignored, by their cost: LateCost() of each.
  Verdict TakeLateData(uint64_t cost, absl::Time now);
  // Bytes of a DATA frame, short ones rounded up.
  static uint64_t LateCost(const nghttp2_frame_hd& frame);

  // Allows late frames of a stream that has ended before its request: `bytes` of DATA, and a head.
  void ExpectLate(uint64_t bytes);

  // Allows a PING with ACK, the answer to one that was sent.
  void ExpectPong() { ++pongs_; }

  // Allows one PING, because a part of an answer was sent. gRPC's clients measure the connection with a PING
  // for each part that they receive while no other PING is under way.
  void AllowPing() { may_ping_ = true; }

 private:
  Verdict TakeLateHead(const nghttp2_frame_hd& head, absl::Time now);

  size_t max_head_bytes_;
  int max_control_frames_;
  TokenBucket resets_;
  TokenBucket control_frames_;
  TokenBucket window_updates_;
  TokenBucket refused_streams_;
  TokenBucket late_data_;
  // The highest number of a stream that the client has opened.
  int32_t last_stream_ = 0;
  // See UseHead().
  std::optional<nghttp2_frame_hd> unused_head_;
  // See ExpectLate().
  uint64_t late_bytes_ = 0;
  int late_heads_ = 0;
  // See ExpectPong().
  int pongs_ = 0;
  // See AllowPing().
  bool may_ping_ = false;
};

}  // namespace saccade::server
