// A line of the log for each call that has ended.
#pragma once

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/core/clock.h"
#include "server/tracing/call_record.h"

namespace saccade::server {

// Thread-safe.
class AccessLog {
 public:
  // No more than `most_per_second` lines; 0 has no bound. How many were left out stands in the next line.
  // `clock` must outlive it.
  AccessLog(int64_t most_per_second, Clock* clock) : most_per_second_(most_per_second), clock_(clock) {}

  void Tell(const CallFacts& call) ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether a line may be written now; if so, how many were not since the last.
  bool Take(int64_t* left_out) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const int64_t most_per_second_;
  Clock* const clock_;
  absl::Mutex mutex_;
  absl::Time second_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  int64_t written_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t left_out_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace saccade::server
