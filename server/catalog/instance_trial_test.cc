#include "server/catalog/instance_trial.h"

#include <ATen/Parallel.h>

#include <atomic>
#include <functional>
#include <map>
#include <mutex>

#include "gtest/gtest.h"

namespace saccade::server {
namespace {

// Time that passes on each thread by itself, as for passes that run beside each other.
class ThreadClock final : public Clock {
 public:
  absl::Time Now() override { return absl::UnixEpoch() + elapsed; }
  bool AwaitUntil(absl::Mutex* /*mu*/, const absl::Condition& /*condition*/,
                  absl::Time /*deadline*/) override {
    return false;
  }
  static thread_local absl::Duration elapsed;
};

thread_local absl::Duration ThreadClock::elapsed;

// The time of a pass over `size` items with `threads` threads.
using Takes = std::function<absl::Duration(int threads, int64_t size)>;

class InstanceTrialTest : public ::testing::Test {
 protected:
  ~InstanceTrialTest() override { at::set_num_threads(before_); }

  InstanceSplit Choose(Optimize goal, int cores, const Takes& takes, int instances = 0) {
    const PassMaker make = [&](int64_t size) {
      return std::function<absl::Status()>([this, size, &takes] {
        const int now = ++running_;
        const int threads = at::get_num_threads();
        {
          const std::lock_guard lock(mutex_);
          most_[threads] = std::max(most_[threads], now);
        }
        ThreadClock::elapsed += takes(threads, size);
        --running_;
        return absl::OkStatus();
      });
    };
    const auto load = [&](int count) -> absl::StatusOr<PassMaker> {
      loaded_ = {count, at::get_num_threads()};
      return make;
    };
    const auto split = LoadForGoal(
        load, {.goal = goal, .cores = cores, .instances = instances, .max_batch_size = 16, .clock = &clock_});
    EXPECT_TRUE(split.ok()) << split.status();
    EXPECT_EQ(loaded_.instances, split->instances) << "the network is loaded for what was chosen";
    EXPECT_EQ(loaded_.threads, split->threads);
    return *split;
  }

  const int before_ = at::get_num_threads();
  ThreadClock clock_;
  InstanceSplit loaded_;
  std::atomic<int> running_{0};
  std::mutex mutex_;
  // By number of threads: the most passes that ran at the same time.
  std::map<int, int> most_;
};

// Sharing a pass gains less with each further thread.
absl::Duration Shared(int threads, int64_t size) {
  return absl::Milliseconds(100) * static_cast<double>(size) * (0.9 / threads + 0.1);
}

TEST_F(InstanceTrialTest, ForThroughputThereAreManyInstances) {
  const InstanceSplit split = Choose(Optimize::kThroughput, 8, Shared);
  EXPECT_EQ(split.instances, 8);
  EXPECT_EQ(split.threads, 1);
}

TEST_F(InstanceTrialTest, ForLatencyThereIsOneWithAllCores) {
  const InstanceSplit split = Choose(Optimize::kLatency, 8, Shared);
  EXPECT_EQ(split.instances, 1);
  EXPECT_EQ(split.threads, 8);
  EXPECT_EQ(most_[8], 1) << "nothing computes beside it";
}

// The compromise of models without a goal is not tried for passes as long as these.
TEST_F(InstanceTrialTest, LongPassesAreTriedToo) {
  const auto takes = [](int threads, int64_t size) {
    return absl::Seconds(2) * static_cast<double>(size) * (threads == 2 ? 1 : 1.2);
  };
  EXPECT_EQ(Choose(Optimize::kLatency, 4, takes).threads, 2);
}

TEST_F(InstanceTrialTest, ThroughputCountsWhatAllInstancesDoTogether) {
  // A single instance is fastest with all four cores, two with two cores each compute more.
  const auto takes = [](int threads, int64_t size) {
    constexpr double kMilliseconds[] = {0, 100, 40, 0, 30};
    return absl::Milliseconds(kMilliseconds[threads] * static_cast<double>(size));
  };
  const InstanceSplit split = Choose(Optimize::kThroughput, 4, takes);
  EXPECT_EQ(split.instances, 2);
  EXPECT_EQ(split.threads, 2);
}

TEST_F(InstanceTrialTest, ConfiguredInstancesStay) {
  const InstanceSplit split = Choose(Optimize::kThroughput, 8, Shared, 2);
  EXPECT_EQ(split.instances, 2);
  EXPECT_EQ(split.threads, 4) << "the cores that two do not use are of no use to them";
}

TEST_F(InstanceTrialTest, OneCoreLeavesNoChoice) {
  const InstanceSplit split = Choose(Optimize::kThroughput, 1, Shared);
  EXPECT_EQ(split.instances, 1);
  EXPECT_EQ(split.threads, 1);
  EXPECT_TRUE(most_.empty()) << "nothing is computed";
}

TEST_F(InstanceTrialTest, WhatFailsOrCannotBeMadeUpGetsAllCores) {
  const auto choose = [&](const PassMaker& make) {
    const auto load = [make](int) -> absl::StatusOr<PassMaker> { return make; };
    return *LoadForGoal(load,
                        {.goal = Optimize::kThroughput, .cores = 4, .max_batch_size = 4, .clock = &clock_});
  };
  const InstanceSplit failed = choose(
      [](int64_t) { return std::function<absl::Status()>([] { return absl::InternalError("broken"); }); });
  EXPECT_EQ(failed.instances, 1);
  EXPECT_EQ(failed.threads, 4);
  EXPECT_EQ(choose([](int64_t) { return nullptr; }).threads, 4);
}

// A full batch that would need too much memory is made smaller.
TEST_F(InstanceTrialTest, BatchesThatCannotBeMadeAreHalved) {
  int64_t largest = 0;
  const PassMaker make = [&](int64_t size) -> std::function<absl::Status()> {
    if (size > 5) return nullptr;
    return [&largest, size] {
      largest = size;
      ThreadClock::elapsed += absl::Milliseconds(10);
      return absl::OkStatus();
    };
  };
  const auto load = [&](int) -> absl::StatusOr<PassMaker> { return make; };
  ASSERT_TRUE(
      LoadForGoal(
          load,
          {.goal = Optimize::kThroughput, .cores = 2, .instances = 1, .max_batch_size = 16, .clock = &clock_})
          .ok());
  EXPECT_EQ(largest, 4);
}

TEST_F(InstanceTrialTest, WhatCannotBeLoadedIsTheError) {
  const auto load = [](int) -> absl::StatusOr<PassMaker> {
    return absl::NotFoundError("the weights are gone");
  };
  EXPECT_EQ(LoadForGoal(load, {.cores = 4, .clock = &clock_}).status(),
            absl::NotFoundError("the weights are gone"));
}

}  // namespace
}  // namespace saccade::server
