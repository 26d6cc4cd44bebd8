// Estimates the current arrival rate of items.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "server/batching/nanos.h"

namespace saccade::server {

// Two exponentially weighted averages. Not thread-safe.
class ArrivalRate {
 public:
  // Counts `items` that arrived at `now`. `memory` is the time constant of the average.
  void Add(int64_t items, NanoTime now, Nanos memory) {
    const double arrived = static_cast<double>(items);
    steady_ = steady_ * Left(now, memory) + arrived / memory.count();
    recent_ = recent_ * Left(now, memory * kRecentMemory) + arrived / (memory * kRecentMemory).count();
    last_ = now;
  }

  // Items per nanosecond: the average over `memory`, but at most kMaxAboveRecent times the average of the
  // recent past, so that the end of a burst shows quickly.
  double At(NanoTime now, Nanos memory) const {
    return std::min(steady_ * Left(now, memory),
                    kMaxAboveRecent * recent_ * Left(now, memory * kRecentMemory));
  }

 private:
  // Time constant of the recent average, as a fraction of `memory`.
  static constexpr double kRecentMemory = 0.25;
  // Above 1, because the recent average is noisy: it lowers the result only if it is clearly lower.
  static constexpr double kMaxAboveRecent = 1.2;

  // The share of an average that is left at `now`.
  double Left(NanoTime now, Nanos memory) const {
    return now <= last_ ? 1 : std::exp(-((now - last_) / memory));
  }

  // Items per nanosecond.
  double steady_ = 0;
  double recent_ = 0;
  NanoTime last_;
};

}  // namespace saccade::server
