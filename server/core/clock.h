// Time as the server's rooms see it, so that tests can turn it by hand.
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

  // The machine's steady clock, so that nothing is late because somebody set the time; never deleted.
  static Clock* Real();

  // Ends waits for `Real()` that are past their deadline and whose timeout the machine's clock, having been
  // set back, has put off. To be called now and then.
  static void WakeOverdue();
};

}  // namespace saccade::server
