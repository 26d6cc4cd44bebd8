// Helpers for times in nanoseconds.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/batching/bucket.h"

namespace saccade::server {

inline constexpr int64_t kMillisecond = 1'000'000;

// Returns time + more, or kNever if that would overflow.
inline int64_t Saturated(int64_t time, double more) {
  const double sum = static_cast<double>(time) + more;
  return sum >= 9e18 ? kNever : time + static_cast<int64_t>(more);
}

inline absl::Duration Nanos(double time) { return absl::Nanoseconds(static_cast<int64_t>(time)); }

// The error for a request that has `left` nanoseconds for a pass that takes `takes`.
inline absl::Status TooLate(double takes, int64_t left) {
  return absl::DeadlineExceededError(absl::StrCat(
      "the request cannot be answered in time: a forward pass takes about ",
      absl::FormatDuration(Nanos(takes)), ", and ", absl::FormatDuration(absl::Nanoseconds(left)),
      " are left before its deadline; use a later deadline"));
}

}  // namespace saccade::server
