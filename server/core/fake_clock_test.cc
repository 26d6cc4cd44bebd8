#include "server/core/fake_clock.h"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace saccade::server {
namespace {

// A thread that waits on the clock for `flag` until `deadline`.
class Waiter {
 public:
  Waiter(FakeClock* clock, absl::Time deadline)
      : thread_([this, clock, deadline] {
          absl::MutexLock lock(&mutex_);
          held_ = clock->AwaitUntil(&mutex_, absl::Condition(&flag_), deadline);
        }) {}

  ~Waiter() {
    if (thread_.joinable()) thread_.join();
  }

  void RaiseFlag() {
    absl::MutexLock lock(&mutex_);
    flag_ = true;
  }

  // Returns the result of AwaitUntil.
  bool Join() {
    thread_.join();
    absl::MutexLock lock(&mutex_);
    return held_;
  }

 private:
  absl::Mutex mutex_;
  bool flag_ ABSL_GUARDED_BY(mutex_) = false;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

TEST(FakeClockTest, StandsStillUntilMoved) {
  const absl::Time start = absl::FromUnixSeconds(1000);
  FakeClock clock(start);
  EXPECT_EQ(clock.Now(), start);
  EXPECT_EQ(clock.Now(), start);
  clock.Advance(absl::Milliseconds(3));
  EXPECT_EQ(clock.Now(), start + absl::Milliseconds(3));
}

// As a model that is unloaded while a test moves the time.
TEST(FakeClockTest, AMutexThatWasWaitedOnMayBeFreedAtOnce) {
  FakeClock clock;
  std::atomic<bool> ends{false};
  std::thread moves([&] {
    while (!ends) clock.Advance(absl::Seconds(1));
  });
  for (int i = 0; i < 2000; ++i) {
    const auto mutex = std::make_unique<absl::Mutex>();
    const bool never = false;
    absl::MutexLock lock(mutex.get());
    EXPECT_FALSE(clock.AwaitUntil(mutex.get(), absl::Condition(&never), clock.Now() + absl::Seconds(1)));
  }
  ends = true;
  moves.join();
}

TEST(FakeClockTest, ConditionThatHoldsDoesNotWait) {
  FakeClock clock;
  absl::Mutex mutex;
  const bool holds = true;
  absl::MutexLock lock(&mutex);
  EXPECT_TRUE(clock.AwaitUntil(&mutex, absl::Condition(&holds), absl::InfiniteFuture()));
  EXPECT_TRUE(clock.AwaitUntil(&mutex, absl::Condition(&holds), absl::InfinitePast()));
}

TEST(FakeClockTest, DeadlineThatIsPastDoesNotWait) {
  FakeClock clock;
  absl::Mutex mutex;
  const bool holds = false;
  absl::MutexLock lock(&mutex);
  EXPECT_FALSE(clock.AwaitUntil(&mutex, absl::Condition(&holds), clock.Now()));
}

TEST(FakeClockTest, ConditionWakesTheWaiter) {
  FakeClock clock;
  Waiter waiter(&clock, absl::InfiniteFuture());
  clock.AwaitWaiters(1);
  waiter.RaiseFlag();
  EXPECT_TRUE(waiter.Join());
}

TEST(FakeClockTest, AdvanceWakesWhoeverIsDueAndNobodyElse) {
  FakeClock clock;
  Waiter soon(&clock, clock.Now() + absl::Seconds(1));
  Waiter late(&clock, clock.Now() + absl::Seconds(10));
  clock.AwaitWaiters(2);
  clock.Advance(absl::Seconds(1));
  EXPECT_FALSE(soon.Join());
  late.RaiseFlag();
  EXPECT_TRUE(late.Join()) << "had it been woken by the clock, it would have returned false";
}

TEST(FakeClockTest, ManyWaitersOnOneMutexAllWake) {
  FakeClock clock;
  absl::Mutex mutex;
  const bool never = false;
  std::atomic<int> timed_out{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      absl::MutexLock lock(&mutex);
      if (!clock.AwaitUntil(&mutex, absl::Condition(&never), clock.Now() + absl::Seconds(1))) ++timed_out;
    });
  }
  clock.AwaitWaiters(8);
  clock.Advance(absl::Milliseconds(999));
  EXPECT_EQ(timed_out, 0);
  clock.Advance(absl::Milliseconds(1));
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(timed_out, 8);
}

TEST(FakeClockTest, RealClockKeepsItsPromise) {
  Clock* clock = Clock::Real();
  absl::Mutex mutex;
  const bool holds = true;
  const bool never = false;
  absl::MutexLock lock(&mutex);
  EXPECT_TRUE(clock->AwaitUntil(&mutex, absl::Condition(&holds), absl::InfiniteFuture()));
  EXPECT_FALSE(clock->AwaitUntil(&mutex, absl::Condition(&never), clock->Now()));
}

}  // namespace
}  // namespace saccade::server
