// Bounds how often something may happen.
#pragma once

#include <algorithm>

#include "absl/time/time.h"

namespace saccade::server {

// Holds up to one second's worth of tokens. Not thread-safe.
class TokenBucket {
 public:
  explicit TokenBucket(double per_second) : per_second_(per_second), tokens_(per_second) {}

  // Takes `count` tokens; false, and takes none, if there are fewer. Times must not decrease.
  bool Take(absl::Time now, double count = 1) {
    if (now > last_) {
      tokens_ = std::min(per_second_, tokens_ + per_second_ * absl::ToDoubleSeconds(now - last_));
      last_ = now;
    }
    if (tokens_ < count) return false;
    tokens_ -= count;
    return true;
  }

 private:
  double per_second_;
  double tokens_;
  absl::Time last_ = absl::InfinitePast();
};

}  // namespace saccade::server
