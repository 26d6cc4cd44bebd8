// How fast items come, as far as the recent past tells.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace saccade::server {

// Times are in nanoseconds. Not thread-safe.
class ArrivalRate {
 public:
  // `memory` is how long an arrival counts.
  void Add(int64_t items, int64_t now, double memory) {
    const double arrived = static_cast<double>(items);
    steady_ = steady_ * Left(now, memory) + arrived / memory;
    recent_ = recent_ * Left(now, memory * kRecent) + arrived / (memory * kRecent);
    last_ = now;
  }

  // Items a nanosecond. What was a burst is over sooner than the average over `memory` shows.
  double At(int64_t now, double memory) const {
    return std::min(steady_ * Left(now, memory), kTrust * recent_ * Left(now, memory * kRecent));
  }

 private:
  static constexpr double kRecent = 0.25;
  // The recent past alone is noisy: it only says that less comes if it is a good deal less.
  static constexpr double kTrust = 1.2;

  double Left(int64_t now, double memory) const {
    return now <= last_ ? 1 : std::exp(-static_cast<double>(now - last_) / memory);
  }

  double steady_ = 0;
  double recent_ = 0;
  int64_t last_ = 0;
};

}  // namespace saccade::server
