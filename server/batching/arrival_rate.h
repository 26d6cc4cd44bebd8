// How fast items come, as far as the recent past tells.
#pragma once

#include <cmath>
#include <cstdint>

namespace saccade::server {

// Times are in nanoseconds. Not thread-safe.
class ArrivalRate {
 public:
  // `memory` is how long an arrival counts.
  void Add(int64_t items, int64_t now, double memory) {
    per_nanosecond_ = At(now, memory) + static_cast<double>(items) / memory;
    last_ = now;
  }

  // Items a nanosecond.
  double At(int64_t now, double memory) const {
    return now <= last_ ? per_nanosecond_
                        : per_nanosecond_ * std::exp(-static_cast<double>(now - last_) / memory);
  }

 private:
  double per_nanosecond_ = 0;
  int64_t last_ = 0;
};

}  // namespace saccade::server
