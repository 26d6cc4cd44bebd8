// The access log: one line for each inference that has ended.
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
  // Writes at most `max_per_second` lines; 0 means no limit. The next line states how many were left out.
  // `clock` must outlive this object.
  AccessLog(int64_t max_per_second, Clock* clock) : max_per_second_(max_per_second), clock_(clock) {}

  void Write(const CallFacts& call) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns true if a line may be written now, and sets `left_out` to the number left out since the last one.
  bool Take(int64_t* left_out) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const int64_t max_per_second_;
  Clock* const clock_;
  absl::Mutex mutex_;
  absl::Time second_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  int64_t written_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t left_out_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace saccade::server
