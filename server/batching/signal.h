// Wakes one thread.
#pragma once

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/core/clock.h"

namespace saccade::server {

// Thread-safe. Each waiting thread has a lock of its own, so that waking one costs the same however many
// wait.
class Signal {
 public:
  // Ends the wait, or the next one if no thread waits.
  void Set() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    set_ = true;
  }

  // Blocks until Set() is called or `deadline` is past. One thread at a time.
  void AwaitUntil(Clock* clock, absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    clock->AwaitUntil(&mutex_, absl::Condition(&set_), deadline);
    set_ = false;
  }

 private:
  absl::Mutex mutex_;
  bool set_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace saccade::server
