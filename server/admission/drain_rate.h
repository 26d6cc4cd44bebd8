// Estimates how fast requests complete, to tell rejected clients when to retry.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace saccade::server {

// Completion rate over the last seconds during which any request was in flight; idle time does not count. Not
// thread-safe.
class DrainRate {
 public:
  // Call it before any request begins or ends. `busy` is true if any request was in flight until `now`.
  void Advance(absl::Time now, bool busy);

  // Counts a request that ended, with any result.
  void Ended() { ended_ += 1; }

  // Estimated time until `requests` more complete, clamped to [kMin, kMax].
  absl::Duration TimeFor(int64_t requests) const;

  static constexpr absl::Duration kMin = absl::Milliseconds(10);
  static constexpr absl::Duration kMax = absl::Seconds(30);
  // Returned by TimeFor while no request has ended yet.
  static constexpr absl::Duration kUnknown = absl::Seconds(1);

 private:
  absl::Time last_ = absl::InfinitePast();
  // Number of requests that ended, and busy seconds in which they did. Both decay with the same time
  // constant.
  double ended_ = 0;
  double busy_seconds_ = 0;
};

}  // namespace saccade::server
