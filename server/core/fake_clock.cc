#include "server/core/fake_clock.h"

#include <algorithm>

namespace saccade::server {

absl::Time FakeClock::Now() {
  absl::MutexLock lock(&mutex_);
  return now_;
}

bool FakeClock::AwaitUntil(absl::Mutex* mu, const absl::Condition& condition, absl::Time deadline) {
  {
    absl::MutexLock lock(&mutex_);
    waiters_.push_back(mu);
  }
  auto due_or_true = [&] { return condition.Eval() || Now() >= deadline; };
  mu->Await(absl::Condition(&due_or_true));
  bool may_be_woken = false;
  {
    absl::MutexLock lock(&mutex_);
    waiters_.erase(std::find(waiters_.begin(), waiters_.end(), mu));
    may_be_woken = advancing_ > 0;
  }
  if (may_be_woken) AwaitAdvance(mu);
  // Evaluated without `mutex_`, because the condition may call Now().
  return condition.Eval();
}

void FakeClock::Advance(absl::Duration by) {
  std::vector<absl::Mutex*> waiting;
  {
    absl::MutexLock lock(&mutex_);
    now_ += by;
    waiting = waiters_;
    ++advancing_;
  }
  // Releasing a mutex makes Abseil look at its waiters' conditions again.
  for (absl::Mutex* mu : waiting) absl::MutexLock wake(mu);
  absl::MutexLock lock(&mutex_);
  --advancing_;
}

void FakeClock::AwaitAdvance(absl::Mutex* mu) {
  mu->Unlock();
  {
    const auto over = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return advancing_ == 0; };
    absl::MutexLock lock(&mutex_, absl::Condition(&over));
  }
  mu->Lock();
}

void FakeClock::AwaitWaiters(int count) {
  const auto enough = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return static_cast<int>(waiters_.size()) >= count;
  };
  mutex_.LockWhen(absl::Condition(&enough));
  mutex_.Unlock();
}

}  // namespace saccade::server
