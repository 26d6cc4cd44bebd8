// Room in the capture's folder for calls that fail because of what they ask for.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"

namespace saccade::server {

// Such calls are always captured, and who sends them decides how large they are. Without a bound they would
// push all others out of the folder. Not thread-safe.
class FaultRoom {
 public:
  // The bounds of the folder: what is written is kept for `max_age` at most.
  FaultRoom(int64_t max_bytes, absl::Duration max_age) : max_bytes_(max_bytes), max_age_(max_age) {}

  // Whether there is room for `bytes` with requests and answers: a quarter of the folder.
  bool HasRoomForBodies(int64_t bytes, absl::Time now) {
    return Level(now) + static_cast<double>(bytes) <= Quarter();
  }
  // Whether there is room for a call at all: three eighths of the folder.
  bool HasRoom(absl::Time now) { return Level(now) < 1.5 * Quarter(); }

  void Add(int64_t bytes, absl::Time now) { level_ = Level(now) + static_cast<double>(bytes); }

 private:
  double Quarter() const { return static_cast<double>(max_bytes_) / 4; }
  // The bytes that were written recently: they fall by a quarter of the folder in each `max_age`. A fraction
  // counts, because less than a byte may become free between two calls.
  double Level(absl::Time now) {
    const double passed = std::max(0.0, absl::FDivDuration(now - at_, max_age_));
    at_ = std::max(at_, now);
    level_ = std::max(0.0, level_ - passed * Quarter());
    return level_;
  }

  const int64_t max_bytes_;
  const absl::Duration max_age_;
  double level_ = 0;
  absl::Time at_ = absl::UnixEpoch();
};

}  // namespace saccade::server
