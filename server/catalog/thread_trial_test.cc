#include "server/catalog/thread_trial.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <functional>
#include <set>

#include "gtest/gtest.h"
#include "server/core/fake_clock.h"

namespace saccade::server {
namespace {

// The time of a pass over `size` items with `threads` threads.
using Takes = std::function<absl::Duration(int threads, int64_t size)>;

class ThreadTrialTest : public ::testing::Test {
 protected:
  ~ThreadTrialTest() override { at::set_num_threads(before_); }

  int Best(int max, const Takes& takes, int64_t max_batch_size = 8) {
    const auto make = [&](int64_t size) {
      return std::function<absl::Status()>([this, size, &takes] {
        EXPECT_EQ(at::get_num_threads(), loaded_);
        tried_.insert(loaded_);
        largest_ = std::max(largest_, size);
        clock_.Advance(takes(at::get_num_threads(), size));
        return absl::OkStatus();
      });
    };
    const auto load = [&](int threads) -> absl::StatusOr<PassMaker> {
      EXPECT_EQ(at::get_num_threads(), threads);
      loaded_ = threads;
      return make;
    };
    const auto best = LoadForBestThreads(load, max, max_batch_size, &clock_);
    EXPECT_TRUE(best.ok()) << best.status();
    EXPECT_EQ(loaded_, *best);
    return *best;
  }

  const int before_ = at::get_num_threads();
  FakeClock clock_;
  std::set<int> tried_;
  int loaded_ = 0;
  int64_t largest_ = 0;
};

absl::Duration Shared(int threads, int64_t size, absl::Duration each, absl::Duration wake) {
  return each * static_cast<double>(size) / threads + wake * (threads - 1);
}

TEST_F(ThreadTrialTest, AShortPassDoesNotPayForWakingThreads) {
  const auto takes = [](int threads, int64_t size) {
    return Shared(threads, size, absl::Microseconds(100), absl::Milliseconds(1));
  };
  EXPECT_EQ(Best(8, takes), 1);
  EXPECT_EQ(tried_, (std::set<int>{1, 2, 4, 8}));
}

TEST_F(ThreadTrialTest, WhatGainsTakesThemAll) {
  const auto takes = [](int threads, int64_t size) {
    return Shared(threads, size, absl::Milliseconds(8), absl::Microseconds(10));
  };
  EXPECT_EQ(Best(4, takes), 4);
}

TEST_F(ThreadTrialTest, BetweenThemIsATradeOff) {
  const auto takes = [](int threads, int64_t size) {
    return Shared(threads, size, absl::Milliseconds(4), absl::Microseconds(800));
  };
  EXPECT_EQ(Best(8, takes), 2);
}

// The time of a pass of which a part runs on one thread only.
absl::Duration Partly(int threads, int64_t size, double shared) {
  return absl::Milliseconds(2) * size * (1 - shared + shared / threads);
}

TEST_F(ThreadTrialTest, TwiceTheThreadsHaveToGainMoreThanAThird) {
  // Two threads take 0.75 of the time, then 0.65.
  EXPECT_EQ(Best(2, [](int threads, int64_t size) { return Partly(threads, size, 0.5); }), 1);
  EXPECT_EQ(Best(2, [](int threads, int64_t size) { return Partly(threads, size, 0.7); }), 2);
}

TEST_F(ThreadTrialTest, ALongPassIsNotComputedAgainAndAgain) {
  int passes = 0;
  const auto takes = [&](int /*threads*/, int64_t /*size*/) {
    ++passes;
    return absl::Seconds(2);
  };
  EXPECT_EQ(Best(4, takes), 4);
  EXPECT_EQ(passes, 1);
}

TEST_F(ThreadTrialTest, NoBatchIsLargerThanTheModelTakes) {
  const auto takes = [](int, int64_t) { return absl::Milliseconds(1); };
  Best(2, takes, 3);
  EXPECT_EQ(largest_, 3);
  Best(2, takes, 64);
  EXPECT_EQ(largest_, 8);
}

TEST_F(ThreadTrialTest, WhatFailsOrCannotBeMadeUpKeepsAll) {
  const auto loads = [](const PassMaker& make) {
    return [make](int) -> absl::StatusOr<PassMaker> { return make; };
  };
  const auto fails = [](int64_t) {
    return std::function<absl::Status()>([] { return absl::InternalError("broken"); });
  };
  EXPECT_EQ(*LoadForBestThreads(loads(fails), 4, 8, &clock_), 4);
  EXPECT_EQ(*LoadForBestThreads(loads([](int64_t) { return nullptr; }), 4, 8, &clock_), 4);
}

TEST_F(ThreadTrialTest, WhatCannotBeLoadedIsTheError) {
  int loads = 0;
  const auto vanishes = [&](int) -> absl::StatusOr<PassMaker> {
    if (++loads == 2) return absl::NotFoundError("the weights are gone");
    return [this](int64_t) {
      return std::function<absl::Status()>([this] {
        clock_.Advance(absl::Milliseconds(1));
        return absl::OkStatus();
      });
    };
  };
  EXPECT_EQ(LoadForBestThreads(vanishes, 4, 8, &clock_).status(),
            absl::NotFoundError("the weights are gone"));
}

}  // namespace
}  // namespace saccade::server
