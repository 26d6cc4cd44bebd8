// A clock at which a test stops loads, and that tells when the catalog's thread has nothing to do.
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/core/clock.h"

namespace saccade::server {

// While it is shut, loads on threads of their own stop at their first look at the clock.
class GateClock final : public Clock {
 public:
  explicit GateClock(Clock* clock) : clock_(clock) {}

  absl::Time Now() override {
    if (ThreadName() == "load") Pass();
    return clock_->Now() + absl::Microseconds(ticks_ ? ++looks_ : looks_.load());
  }
  bool AwaitUntil(absl::Mutex* mu, const absl::Condition& condition, absl::Time deadline) override {
    if (ThreadName() == "catalog" && !condition.Eval() && clock_->Now() < deadline) {
      absl::MutexLock lock(&mutex_);
      ++rests_;
    }
    return clock_->AwaitUntil(mu, condition, deadline);
  }
  void Shut() {
    absl::MutexLock lock(&mutex_);
    shut_ = true;
  }
  void Open() {
    absl::MutexLock lock(&mutex_);
    shut_ = false;
  }
  // From now on each look takes a microsecond. What took no time is not remembered for the next start.
  void Tick() { ticks_ = true; }
  // Whether so many loads stand at the gate at the same time, now or soon.
  bool AwaitLoads(int count) {
    absl::MutexLock lock(&mutex_);
    const auto are_there = [this, count] {
      mutex_.AssertHeld();
      return standing_ == count;
    };
    return mutex_.AwaitWithTimeout(absl::Condition(&are_there), absl::Seconds(60));
  }

  // How often the catalog's thread has begun to wait with nothing left to do.
  int64_t rests() const {
    absl::MutexLock lock(&mutex_);
    return rests_;
  }
  // Whether rests() is more than `before`, now or soon.
  bool AwaitRest(int64_t before) const {
    absl::MutexLock lock(&mutex_);
    const auto has_rested = [this, before] {
      mutex_.AssertHeld();
      return rests_ > before;
    };
    return mutex_.AwaitWithTimeout(absl::Condition(&has_rested), absl::Seconds(60));
  }

 private:
  static std::string ThreadName() {
    std::array<char, 16> name = {};
    pthread_getname_np(pthread_self(), name.data(), name.size());
    return name.data();
  }
  void Pass() {
    absl::MutexLock lock(&mutex_);
    const auto is_open = [this] {
      mutex_.AssertHeld();
      return !shut_;
    };
    ++standing_;
    mutex_.Await(absl::Condition(&is_open));
    --standing_;
  }

  Clock* const clock_;
  std::atomic<bool> ticks_{false};
  std::atomic<int64_t> looks_{0};
  mutable absl::Mutex mutex_;
  bool shut_ ABSL_GUARDED_BY(mutex_) = false;
  int standing_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t rests_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace saccade::server
