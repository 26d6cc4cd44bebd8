// When the repositories are scanned next.
#pragma once

#include <cstdint>
#include <random>

#include "absl/time/time.h"

namespace saccade::server {

// Each wait is `interval` and a random time of up to `jitter`. Replicas that were started together and read
// one shared volume would otherwise scan it, and load a new version from it, in the same moment. Not
// thread-safe.
class PollSchedule {
 public:
  // REQUIRES: neither is negative.
  PollSchedule(absl::Duration interval, absl::Duration jitter, uint64_t seed)
      : interval_(interval), jitter_(jitter), random_(seed) {}

  absl::Time After(absl::Time now) {
    if (jitter_ == absl::ZeroDuration()) return now + interval_;
    return now + interval_ + std::uniform_real_distribution<double>(0, 1)(random_) * jitter_;
  }

 private:
  const absl::Duration interval_;
  const absl::Duration jitter_;
  std::mt19937_64 random_;
};

}  // namespace saccade::server
