// The pauses between attempts to load a model that fails to load.
#pragma once

#include <algorithm>

#include "absl/time/time.h"

namespace saccade::server {

// One second, then twice as long after each further failure, up to two minutes.
class Backoff {
 public:
  // Attempts in all that are made without being asked for again.
  static constexpr int kMaxAttempts = 9;

  // The pause after one more failure.
  absl::Duration Next() {
    const absl::Duration pause =
        std::min(absl::Seconds(1) * (int64_t{1} << std::min(failures_, 7)), kLongest);
    ++failures_;
    return pause;
  }

  int failures() const { return failures_; }
  bool is_spent() const { return failures_ >= kMaxAttempts; }

 private:
  static constexpr absl::Duration kLongest = absl::Minutes(2);

  int failures_ = 0;
};

}  // namespace saccade::server
