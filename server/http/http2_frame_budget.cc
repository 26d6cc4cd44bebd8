#include "server/http/http2_frame_budget.h"

namespace saccade::server {
namespace {

// Refused streams in a second, before the client is disconnected.
constexpr double kMaxRefusedPerSecond = 500;

FrameBudget::Verdict Bounded(TokenBucket& bucket, Refusal refusal, absl::Time now) {
  if (bucket.Take(now)) return {};
  return {refusal, /*disconnect=*/true};
}

}  // namespace

FrameBudget::FrameBudget(const HttpLimits& limits)
    : resets_(limits.max_resets_per_second),
      control_frames_(limits.max_control_frames_per_second),
      window_updates_(limits.max_window_updates_per_second),
      refused_streams_(kMaxRefusedPerSecond) {}

FrameBudget::Verdict FrameBudget::Take(const nghttp2_frame_hd& frame, bool is_full, absl::Time now) {
  switch (frame.type) {
    case NGHTTP2_HEADERS:
      // The trailers of a request have the number of an open stream.
      if (frame.stream_id <= last_stream_) return {};
      last_stream_ = frame.stream_id;
      if (!is_full) return {};
      return {Refusal::kStreams, /*disconnect=*/!refused_streams_.Take(now)};
    case NGHTTP2_CONTINUATION:
      return {};
    case NGHTTP2_DATA:
      if (frame.length > 0 || (frame.flags & NGHTTP2_FLAG_END_STREAM) != 0) return {};
      break;
    case NGHTTP2_SETTINGS:
    case NGHTTP2_PING:
      if ((frame.flags & NGHTTP2_FLAG_ACK) != 0) return {};
      break;
    case NGHTTP2_WINDOW_UPDATE:
      return Bounded(window_updates_, Refusal::kControlFrames, now);
    case NGHTTP2_RST_STREAM:
      return Bounded(resets_, Refusal::kResets, now);
    default:  // PRIORITY and unknown types
      break;
  }
  return Bounded(control_frames_, Refusal::kControlFrames, now);
}

FrameBudget::Verdict FrameBudget::TakeInvalid(absl::Time now) {
  return Bounded(resets_, Refusal::kResets, now);
}

}  // namespace saccade::server
