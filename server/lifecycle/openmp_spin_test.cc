#include "server/lifecycle/openmp_spin.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace saccade::server {
namespace {

TEST(SpinningTest, ThreadsSpinForTenWakeUps) {
  EXPECT_EQ(SpinRounds({.wake_up = absl::Microseconds(15), .round = absl::Nanoseconds(10)}), 15'000);
  EXPECT_EQ(SpinRounds({.wake_up = absl::Microseconds(20), .round = absl::Nanoseconds(25)}), 8'000);
}

TEST(SpinningTest, ThereIsALeastAndAMost) {
  EXPECT_EQ(SpinRounds({.wake_up = absl::Microseconds(1), .round = absl::Nanoseconds(50)}), 3'000);
  EXPECT_EQ(SpinRounds({.wake_up = absl::Microseconds(2), .round = absl::Nanoseconds(15)}), 10'000);
  EXPECT_EQ(SpinRounds({.wake_up = absl::Milliseconds(20), .round = absl::Nanoseconds(10)}), 25'000);
  EXPECT_EQ(SpinRounds({.wake_up = absl::Microseconds(1), .round = absl::ZeroDuration()}), 150'000);
}

TEST(SpinningTest, MeasuresWhatIsPossible) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "there is one core";
  const auto costs = MeasureWaiting();
  ASSERT_TRUE(costs.has_value());
  EXPECT_GT(costs->wake_up, absl::Nanoseconds(500)) << "two system calls at least";
  EXPECT_GT(costs->round, absl::Nanoseconds(0.2));
  EXPECT_LT(costs->round, absl::Microseconds(5));
}

TEST(SpinningTest, OneCoreHasNobodyToWaitFor) {
  std::thread([] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<size_t>(sched_getcpu()), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    EXPECT_FALSE(MeasureWaiting().has_value());
  }).join();
}

TEST(SpinningTest, TellsBoth) {
  EXPECT_EQ(ToText({.wake_up = absl::Microseconds(35), .round = absl::Nanoseconds(10)}),
            "a wake-up takes 35.0 us, a round of spinning 10.0 ns");
}

}  // namespace
}  // namespace saccade::server
