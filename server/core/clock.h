// Clock interface of the server; tests replace it by FakeClock.
#pragma once

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace saccade::server {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;

  virtual absl::Time Now() = 0;

  // REQUIRES: `mu` is held. Blocks until `condition` holds or `deadline` is past; true if it holds.
  // `mu` is released while waiting, as by absl::Mutex::AwaitWithDeadline.
  virtual bool AwaitUntil(absl::Mutex* mu, const absl::Condition& condition, absl::Time deadline) = 0;

  // A monotonic clock, so that setting the system time makes nothing late. Never deleted.
  static Clock* Real();

  // Ends waits on Real() whose deadline has passed. Call it periodically: absl::Mutex timeouts follow the
  // wall clock, so setting that back would delay them.
  static void WakeOverdue();
};

}  // namespace saccade::server
