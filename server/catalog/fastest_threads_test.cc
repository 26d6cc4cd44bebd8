#include "server/catalog/fastest_threads.h"

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

class FastestThreadsTest : public ::testing::Test {
 protected:
  ~FastestThreadsTest() override { at::set_num_threads(before_); }

  int Fastest(int max, const Takes& takes, int64_t max_batch_size = 8) {
    const auto make = [&](int64_t size) {
      return std::function<absl::Status()>([this, size, &takes] {
        EXPECT_EQ(at::get_num_threads(), loaded_);
        tried_.insert(loaded_);
        largest_ = std::max(largest_, size);
        clock_.Advance(takes(at::get_num_threads(), size));
        return absl::OkStatus();
      });
    };
    const auto load = [&]() -> absl::StatusOr<PassMaker> {
      loaded_ = at::get_num_threads();
      return make;
    };
    const auto fastest = LoadForFastest(load, max, max_batch_size, &clock_);
    EXPECT_TRUE(fastest.ok()) << fastest.status();
    EXPECT_EQ(loaded_, *fastest);
    return *fastest;
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

TEST_F(FastestThreadsTest, AShortPassDoesNotPayForWakingThreads) {
  const auto takes = [](int threads, int64_t size) {
    return Shared(threads, size, absl::Microseconds(100), absl::Milliseconds(1));
  };
  EXPECT_EQ(Fastest(8, takes), 1);
  EXPECT_EQ(tried_, (std::set<int>{1, 2, 4, 8}));
}

TEST_F(FastestThreadsTest, WhatGainsTakesThemAll) {
  const auto takes = [](int threads, int64_t size) {
    return Shared(threads, size, absl::Milliseconds(8), absl::Microseconds(10));
  };
  EXPECT_EQ(Fastest(4, takes), 4);
}

TEST_F(FastestThreadsTest, BetweenThemIsATradeOff) {
  const auto takes = [](int threads, int64_t size) {
    return Shared(threads, size, absl::Milliseconds(4), absl::Microseconds(800));
  };
  EXPECT_EQ(Fastest(8, takes), 4);
}

TEST_F(FastestThreadsTest, ALongPassIsNotComputedAgainAndAgain) {
  int passes = 0;
  const auto takes = [&](int /*threads*/, int64_t /*size*/) {
    ++passes;
    return absl::Seconds(2);
  };
  EXPECT_EQ(Fastest(4, takes), 4);
  EXPECT_EQ(passes, 1);
}

TEST_F(FastestThreadsTest, NoBatchIsLargerThanTheModelTakes) {
  const auto takes = [](int, int64_t) { return absl::Milliseconds(1); };
  Fastest(2, takes, 3);
  EXPECT_EQ(largest_, 3);
  Fastest(2, takes, 64);
  EXPECT_EQ(largest_, 8);
}

TEST_F(FastestThreadsTest, WhatFailsOrCannotBeMadeUpKeepsAll) {
  const auto loads = [](const PassMaker& make) {
    return [make]() -> absl::StatusOr<PassMaker> { return make; };
  };
  const auto fails = [](int64_t) {
    return std::function<absl::Status()>([] { return absl::InternalError("broken"); });
  };
  EXPECT_EQ(*LoadForFastest(loads(fails), 4, 8, &clock_), 4);
  EXPECT_EQ(*LoadForFastest(loads([](int64_t) { return nullptr; }), 4, 8, &clock_), 4);
}

TEST_F(FastestThreadsTest, WhatCannotBeLoadedIsTheError) {
  int loads = 0;
  const auto vanishes = [&]() -> absl::StatusOr<PassMaker> {
    if (++loads == 2) return absl::NotFoundError("the weights are gone");
    return [this](int64_t) {
      return std::function<absl::Status()>([this] {
        clock_.Advance(absl::Milliseconds(1));
        return absl::OkStatus();
      });
    };
  };
  EXPECT_EQ(LoadForFastest(vanishes, 4, 8, &clock_).status(), absl::NotFoundError("the weights are gone"));
}

}  // namespace
}  // namespace saccade::server
