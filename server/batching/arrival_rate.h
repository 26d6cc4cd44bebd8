// Estimates the current arrival rate of items.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace saccade::server {

// Two exponentially weighted averages. Times are in nanoseconds. Not thread-safe.
class ArrivalRate {
 public:
  // Counts `items` that arrived at `now`. `memory` is the time constant of the average.
  void Add(int64_t items, int64_t now, double memory) {
    const double arrived = static_cast<double>(items);
    steady_ = steady_ * Left(now, memory) + arrived / memory;
    recent_ = recent_ * Left(now, memory * kRecent) + arrived / (memory * kRecent);
    last_ = now;
  }

  // Items per nanosecond: the average over `memory`, but at most kTrust times the average of the recent past,
  // so that the end of a burst shows quickly.
  double At(int64_t now, double memory) const {
    return std::min(steady_ * Left(now, memory), kTrust * recent_ * Left(now, memory * kRecent));
  }

 private:
  // Time constant of the recent average, as a fraction of `memory`.
  static constexpr double kRecent = 0.25;
  // The recent average is noisy, so it lowers the result only if it is clearly lower.
  static constexpr double kTrust = 1.2;

  double Left(int64_t now, double memory) const {
    return now <= last_ ? 1 : std::exp(-static_cast<double>(now - last_) / memory);
  }

  double steady_ = 0;
  double recent_ = 0;
  int64_t last_ = 0;
};

}  // namespace saccade::server
