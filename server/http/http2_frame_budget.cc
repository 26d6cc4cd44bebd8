#include "server/http/http2_frame_budget.h"

#include <algorithm>
#include <utility>

namespace saccade::server {
namespace {

// Refused streams in a second, before the client is disconnected.
constexpr double kMaxRefusedPerSecond = 500;
// Bytes of late DATA in a second, beyond those that are expected.
constexpr double kMaxLateBytesPerSecond = 1 << 20;
// What an ignored DATA frame costs at least, in bytes of others.
constexpr uint64_t kMinLateCost = 64;
// Bytes that a client may have on its way: the connection's window, and as much again that it gets back
// before it hears of the end. Heads likewise.
constexpr uint64_t kMaxLateBytes = uint64_t{32} << 20;
constexpr int kMaxLateHeads = 1024;
// For the DATA frame that ends a stream, and may be empty.
constexpr uint64_t kEndBytes = 2 * kMinLateCost;
// Bytes of a late head that count as one control frame: decompressing them takes as long.
constexpr size_t kLateHeadUnit = 256;

FrameBudget::Verdict Bounded(TokenBucket& bucket, Refusal refusal, absl::Time now, double count = 1) {
  if (bucket.Take(now, count)) return {};
  return {refusal, /*disconnect=*/true};
}

}  // namespace

FrameBudget::FrameBudget(const HttpLimits& limits)
    : max_head_bytes_(limits.max_head_bytes),
      max_control_frames_(limits.max_control_frames_per_second),
      resets_(limits.max_resets_per_second),
      control_frames_(limits.max_control_frames_per_second),
      window_updates_(limits.max_window_updates_per_second),
      refused_streams_(kMaxRefusedPerSecond),
      late_data_(kMaxLateBytesPerSecond) {}

FrameBudget::Verdict FrameBudget::Take(const nghttp2_frame_hd& frame, bool is_full, absl::Time now) {
  if (const auto late = std::exchange(unused_head_, std::nullopt)) {
    const Verdict verdict = TakeLateHead(*late, now);
    if (verdict.disconnect) return verdict;
  }
  switch (frame.type) {
    case NGHTTP2_HEADERS:
      // Trailers, of a stream that is open or has ended.
      if (!IsNew(frame.stream_id)) {
        unused_head_ = frame;
        return {};
      }
      last_stream_ = frame.stream_id;
      if (!is_full) return {};
      return {Refusal::kStreams, /*disconnect=*/!refused_streams_.Take(now)};
    case NGHTTP2_CONTINUATION:
      return {};
    case NGHTTP2_DATA:
      if (frame.length > 0 || (frame.flags & NGHTTP2_FLAG_END_STREAM) != 0) return {};
      break;
    case NGHTTP2_SETTINGS:
      // nghttp2 ends the connection if it acknowledges nothing.
      if ((frame.flags & NGHTTP2_FLAG_ACK) != 0) return {};
      break;
    case NGHTTP2_PING:
      if ((frame.flags & NGHTTP2_FLAG_ACK) == 0) {
        if (std::exchange(may_ping_, false)) return {};
        break;
      }
      if (pongs_ == 0) break;
      --pongs_;
      return {};
    case NGHTTP2_WINDOW_UPDATE:
      return Bounded(window_updates_, Refusal::kControlFrames, now);
    case NGHTTP2_RST_STREAM:
      return Bounded(resets_, Refusal::kResets, now);
    default:  // PRIORITY and unknown types
      break;
  }
  return Bounded(control_frames_, Refusal::kControlFrames, now);
}

FrameBudget::Verdict FrameBudget::TakePaddedData(const nghttp2_data& frame, absl::Time now) {
  // The length of the padding includes the byte that states it.
  if (frame.padlen < frame.hd.length || (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) return {};
  return Bounded(control_frames_, Refusal::kControlFrames, now);
}

FrameBudget::Verdict FrameBudget::TakeProvokedReset(absl::Time now) {
  return Bounded(resets_, Refusal::kResets, now);
}

FrameBudget::Verdict FrameBudget::TakeLateHead(const nghttp2_frame_hd& head, absl::Time now) {
  const bool is_whole = (head.flags & NGHTTP2_FLAG_END_HEADERS) != 0;
  if (is_whole && head.length <= max_head_bytes_ && late_heads_ > 0) {
    --late_heads_;
    return {};
  }
  // nghttp2 does not tell of the CONTINUATION frames of a head that it ignores.
  const size_t units = 1 + head.length / kLateHeadUnit;
  const double count = is_whole ? static_cast<double>(units) : max_control_frames_;
  return Bounded(control_frames_, Refusal::kControlFrames, now, count);
}

FrameBudget::Verdict FrameBudget::TakeLateData(uint64_t cost, absl::Time now) {
  const uint64_t expected = std::min(cost, late_bytes_);
  late_bytes_ -= expected;
  return Bounded(late_data_, Refusal::kControlFrames, now, static_cast<double>(cost - expected));
}

uint64_t FrameBudget::LateCost(const nghttp2_frame_hd& frame) {
  return std::max<uint64_t>(frame.length, kMinLateCost);
}

void FrameBudget::ExpectLate(uint64_t bytes) {
  late_bytes_ = std::min(kMaxLateBytes, late_bytes_ + std::min(bytes, kMaxLateBytes) + kEndBytes);
  late_heads_ = std::min(kMaxLateHeads, late_heads_ + 1);
}

}  // namespace saccade::server
