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

  // Moves time forward and wakes all threads whose deadline has passed. The mutexes waited on must outlive
  // the call.
  void Advance(absl::Duration by);

  // Blocks until at least `count` threads wait in AwaitUntil.
  void AwaitWaiters(int count);

 private:
  absl::Mutex mutex_;
  absl::Time now_ ABSL_GUARDED_BY(mutex_);
  std::vector<absl::Mutex*> waiters_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server
