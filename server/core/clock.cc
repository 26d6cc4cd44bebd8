#include "server/core/clock.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/clock.h"

namespace saccade::server {
namespace {

// Starts at the wall-clock time and then advances with the steady clock.
class RealClock final : public Clock {
 public:
  absl::Time Now() override {
    return begun_ + absl::FromChrono(std::chrono::steady_clock::now() - steadily_begun_);
  }

  bool AwaitUntil(absl::Mutex* mu, const absl::Condition& condition, absl::Time deadline) override {
    if (deadline == absl::InfiniteFuture()) {
      mu->Await(condition);
      return true;
    }
    if (condition.Eval()) return true;
    // absl::Mutex timeouts follow the wall clock, so check each wake-up against this clock.
    Wait wait{condition, deadline, this};
    Add(mu);
    while (!wait.Over()) {
      mu->AwaitWithTimeout(absl::Condition(&wait, &Wait::Over), deadline - Now());
    }
    Remove(mu);
    return condition.Eval();
  }

  void WakeOverdue() {
    absl::MutexLock lock(&mutex_);
    for (absl::Mutex* waiting : waiting_) {
      // Unlocking `waiting` re-evaluates the conditions of its waiters. If it is locked, its holder will do
      // that.
      if (waiting->TryLock()) waiting->Unlock();
    }
  }

 private:
  struct Wait {
    const absl::Condition& condition;
    const absl::Time deadline;
    RealClock* const clock;

    bool Over() { return condition.Eval() || clock->Now() >= deadline; }
  };

  void Add(absl::Mutex* mu) {
    absl::MutexLock lock(&mutex_);
    waiting_.push_back(mu);
  }

  void Remove(absl::Mutex* mu) {
    absl::MutexLock lock(&mutex_);
    waiting_.erase(std::find(waiting_.begin(), waiting_.end(), mu));
  }

  const absl::Time begun_ = absl::Now();
  const std::chrono::steady_clock::time_point steadily_begun_ = std::chrono::steady_clock::now();
  // Acquired while one of `waiting_` is held. Code that holds it must not block on one of those.
  absl::Mutex mutex_;
  std::vector<absl::Mutex*> waiting_ ABSL_GUARDED_BY(mutex_);
};

RealClock* TheClock() {
  static RealClock* clock = new RealClock;
  return clock;
}

}  // namespace

Clock* Clock::Real() { return TheClock(); }

void Clock::WakeOverdue() { TheClock()->WakeOverdue(); }

}  // namespace saccade::server
