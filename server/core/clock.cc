#include "server/core/clock.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/clock.h"

namespace saccade::server {
namespace {

// Begins with the wall's time and goes on steadily, whatever the machine's clock is set to meanwhile.
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
    // The mutex's own timeouts follow the wall's clock: they are only believed when this one agrees.
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
      // Who unlocks it looks at the waits' conditions. If it is taken, its holder will.
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
  // Taken by who holds one of `waiting_`, so nobody may wait for one of those with it.
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
