// The thread that serves a set of connections, as the code that runs on it sees it.
#pragma once

#include <deque>
#include <new>
#include <utility>

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

  // Runs `task` later, one such task in each round: so many calls that each have much to do leave the loop
  // time for its other connections. Loop's thread only.
  void PostSlow(Task task) {
    slow_.push_back(std::move(task));
    PostRunSlow();
  }

  // Loop's thread only.
  Timers& timers() { return timers_; }

 private:
  // If this throws, the next call tries again.
  void PostRunSlow() {
    if (slow_posted_ || slow_.empty()) return;
    Post([this] { RunSlow(); });
    slow_posted_ = true;
  }
  void RunSlow() {
    slow_posted_ = false;
    Task task = std::move(slow_.front());
    slow_.pop_front();
    try {
      // Before the task, which may throw.
      PostRunSlow();
    } catch (const std::bad_alloc&) {
      // It is tried again after the task, which may free memory.
    }
    std::move(task)();
    PostRunSlow();
  }

  Timers timers_;
  std::deque<Task> slow_;
  // RunSlow() was posted and has not begun.
  bool slow_posted_ = false;
};

}  // namespace saccade::server
