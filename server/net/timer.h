// Timers of one event loop.
#pragma once

#include <functional>
#include <map>
#include <utility>

#include "absl/time/time.h"

namespace saccade::server {

class Timer;

// The set timers of one loop, ordered by time. Used on the loop's thread only.
class Timers {
 public:
  Timers() = default;
  Timers(const Timers&) = delete;
  Timers& operator=(const Timers&) = delete;

  // When the next timer is due; absl::InfiniteFuture() if none is set.
  absl::Time Next() const;

  // Runs the actions of all timers that are due at `now`, in the order of their times. An action may set,
  // cancel and destroy any timer, including its own. A timer set by an action runs in a later call.
  void RunDue(absl::Time now);

 private:
  friend class Timer;
  using Queue = std::multimap<absl::Time, Timer*>;

  Queue queue_;
  // Those that RunDue() runs next; apart, so that what their actions set waits for the next call.
  Queue due_;
};

// Runs an action once at a given time. Used on the loop's thread only.
class Timer {
 public:
  // `timers` must outlive the timer.
  Timer(Timers* timers, std::function<void()> action) : timers_(timers), action_(std::move(action)) {}
  ~Timer() { Cancel(); }

  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // Replaces an earlier time. absl::InfiniteFuture() cancels.
  void Set(absl::Time when);
  void Cancel();
  bool is_set() const { return is_set_; }

 private:
  friend class Timers;

  Timers* const timers_;
  const std::function<void()> action_;
  bool is_set_ = false;
  // Where it stands in `queue_`, if it is set.
  Timers::Queue* queue_ = nullptr;
  Timers::Queue::iterator position_;
};

}  // namespace saccade::server
