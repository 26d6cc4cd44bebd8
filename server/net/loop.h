// The thread that serves a set of connections, as the code that runs on it sees it.
#pragma once

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "server/net/timer.h"

namespace saccade::server {

// Implemented by EventLoop, and by ManualLoop in tests.
class Loop {
 public:
  using Task = absl::AnyInvocable<void() &&>;

  virtual ~Loop() = default;

  // The time of the monotonic clock (Clock::Real()), read once in each round of the loop. Loop's thread only.
  virtual absl::Time Now() const = 0;

  // Runs `task` on the loop's thread, after what runs there now. Tasks from one thread keep their order. A
  // task that is posted after the loop has ended is destroyed without being run. Thread-safe, never blocks.
  virtual void Post(Task task) = 0;

  // Whether the calling thread is the loop's.
  virtual bool IsCurrent() const = 0;

  // Loop's thread only.
  Timers& timers() { return timers_; }

 private:
  Timers timers_;
};

}  // namespace saccade::server
