#include "server/core/clock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"

namespace saccade::server {
namespace {

TEST(RealClockTest, WhatDoesNotComeIsWaitedForUntilTheDeadline) {
  absl::Mutex mutex;
  bool never = false;
  const absl::Time deadline = Clock::Real()->Now() + absl::Milliseconds(20);
  absl::MutexLock lock(&mutex);
  EXPECT_FALSE(Clock::Real()->AwaitUntil(&mutex, absl::Condition(&never), deadline));
  EXPECT_GE(Clock::Real()->Now(), deadline);
  EXPECT_FALSE(Clock::Real()->AwaitUntil(&mutex, absl::Condition(&never), absl::InfinitePast()));
}

TEST(RealClockTest, WhatComesEndsTheWait) {
  for (const absl::Time deadline : {absl::InfiniteFuture(), Clock::Real()->Now() + absl::Hours(1)}) {
    absl::Mutex mutex;
    bool come = false;
    absl::Notification waited;
    std::thread waiter([&] {
      absl::MutexLock lock(&mutex);
      EXPECT_TRUE(Clock::Real()->AwaitUntil(&mutex, absl::Condition(&come), deadline));
      waited.Notify();
    });
    // WakeOverdue does not end a wait whose deadline is in the future.
    for (int i = 0; i < 1000; ++i) Clock::WakeOverdue();
    EXPECT_FALSE(waited.HasBeenNotified());
    {
      absl::MutexLock lock(&mutex);
      come = true;
    }
    waiter.join();
  }
}

TEST(RealClockTest, WakingAmidWaitsHoldsUpNobody) {
  absl::Mutex mutex;
  bool never = false;
  std::atomic<bool> done = false;
  std::thread waker([&] {
    while (!done) Clock::WakeOverdue();
  });
  std::vector<std::thread> waiters;
  for (int i = 0; i < 4; ++i) {
    waiters.emplace_back([&] {
      for (int wait = 0; wait < 50; ++wait) {
        absl::MutexLock lock(&mutex);
        const absl::Time deadline = Clock::Real()->Now() + absl::Microseconds(200);
        EXPECT_FALSE(Clock::Real()->AwaitUntil(&mutex, absl::Condition(&never), deadline));
      }
    });
  }
  for (std::thread& waiter : waiters) waiter.join();
  done = true;
  waker.join();
}

}  // namespace
}  // namespace saccade::server
