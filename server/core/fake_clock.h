// A clock that advances only when a test calls Advance.
#pragma once

#include <vector>

#include "absl/base/thread_annotations.h"
#include "server/core/clock.h"

namespace saccade::server {

// Thread-safe. A waiter wakes when its condition holds or when Advance passes its deadline.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(absl::Time start = absl::UnixEpoch() + absl::Hours(1)) : now_(start) {}

  absl::Time Now() override;
  bool AwaitUntil(absl::Mutex* mu, const absl::Condition& condition, absl::Time deadline) override;

  // Moves time forward and wakes all threads whose deadline has passed.
  void Advance(absl::Duration by);

  // Blocks until at least `count` threads wait in AwaitUntil.
  void AwaitWaiters(int count);

 private:
  // Waits until no Advance() may lock `mu` any more: the thread that waited may then free it. REQUIRES: `mu`
  // is held.
  void AwaitAdvance(absl::Mutex* mu) ABSL_NO_THREAD_SAFETY_ANALYSIS;

  absl::Mutex mutex_;
  absl::Time now_ ABSL_GUARDED_BY(mutex_);
  std::vector<absl::Mutex*> waiters_ ABSL_GUARDED_BY(mutex_);
  // Calls of Advance() that run.
  int advancing_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace saccade::server
