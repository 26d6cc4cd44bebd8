#include "client/load/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "client/load/arrivals.h"
#include "client/load/blocking_calls.h"

namespace saccade::client {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// Virtual time, which only sleeping and answering move on.
class VirtualTime {
 public:
  LoadClock clock() {
    return {.now = [this] { return Now(); }, .sleep_until = [this](absl::Time due) { SleepUntil(due); }};
  }

  absl::Time Now() {
    const absl::MutexLock lock(&mutex_);
    return now_;
  }
  void SleepUntil(absl::Time due) {
    const absl::MutexLock lock(&mutex_);
    now_ = std::max(now_, due);
  }
  void Advance(absl::Duration by) {
    const absl::MutexLock lock(&mutex_);
    now_ += by;
  }

 private:
  absl::Mutex mutex_;
  absl::Time now_ ABSL_GUARDED_BY(mutex_) = absl::UnixEpoch();
};

LoadResult RunBlocking(const LoadPlan& plan, int threads, const std::function<CallResult(size_t)>& call,
                       const LoadClock& clock = {}) {
  BlockingCalls calls(threads, call);
  return RunLoad(plan, calls.starter(), nullptr, clock);
}

TEST(ArrivalTimes, AreAsManyAsTheRateSays) {
  const auto times = ArrivalTimes(1000, absl::Seconds(20), 1);
  // The standard deviation of a Poisson process is the square root of its mean.
  EXPECT_NEAR(static_cast<double>(times.size()), 20'000, 5 * 142);
  EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
  EXPECT_LT(times.back(), absl::Seconds(20));
  EXPECT_EQ(ArrivalTimes(1000, absl::Seconds(20), 1), times);
  EXPECT_NE(ArrivalTimes(1000, absl::Seconds(20), 2), times);
}

TEST(RunLoad, SendsEveryRequestOnce) {
  const LoadPlan plan{.rate = 2000, .duration = absl::Milliseconds(100), .max_in_flight = 4};
  VirtualTime time;
  absl::Mutex mutex;
  std::multiset<size_t> sent;
  const LoadResult result = RunBlocking(
      plan, 4,
      [&](size_t number) -> CallResult {
        const absl::MutexLock lock(&mutex);
        sent.insert(number);
        return {};
      },
      time.clock());
  const size_t due = ArrivalTimes(plan.rate, plan.duration, plan.seed).size();
  EXPECT_EQ(result.samples.size(), due);
  EXPECT_EQ(sent.size(), due);
  EXPECT_EQ(std::set<size_t>(sent.begin(), sent.end()).size(), due);
}

TEST(RunLoad, AnOpenLoopSendsLateWhatExceedsItsBound) {
  const LoadPlan plan{.rate = 400, .duration = absl::Milliseconds(100), .max_in_flight = 2};
  VirtualTime time;
  std::atomic<int> now = 0;
  std::atomic<int> max = 0;
  const LoadResult result = RunBlocking(
      plan, 4,
      [&](size_t) -> CallResult {
        const int here = ++now;
        for (int seen = max; here > seen && !max.compare_exchange_weak(seen, here);) continue;
        time.Advance(absl::Milliseconds(10));
        --now;
        return {};
      },
      time.clock());
  EXPECT_LE(max, 2);
  // Each answer takes 10 ms. About 40 are due within 0.1 s, so the last one waits for nearly all others.
  const LoadSample& last = result.samples.back();
  EXPECT_GT(last.held(), absl::Milliseconds(60));
  EXPECT_TRUE(last.waited);
  EXPECT_FALSE(result.samples.front().waited);
  EXPECT_GE(last.latency(), last.held() + absl::Milliseconds(10));
}

TEST(RunLoad, ASenderThatWakesLateIsNotTheServersFault) {
  VirtualTime time;
  LoadClock late = time.clock();
  late.sleep_until = [&, wait = late.sleep_until](absl::Time due) { wait(due + absl::Milliseconds(5)); };
  const LoadResult result = RunLoad(
      {.rate = 100, .duration = absl::Milliseconds(200), .max_in_flight = 1},
      [](const LoadCall&, const CallDone& done) { done({}); }, nullptr, late);
  ASSERT_FALSE(result.samples.empty());
  for (const LoadSample& sample : result.samples) {
    EXPECT_GE(sample.held(), absl::Milliseconds(1));
    EXPECT_FALSE(sample.waited);
  }
}

TEST(RunLoad, AnOpenLoopWithoutABoundWaitsForNoResponse) {
  VirtualTime time;
  const LoadPlan plan{.rate = 100, .duration = absl::Milliseconds(200), .connections = 3};
  const size_t due = ArrivalTimes(plan.rate, plan.duration, plan.seed).size();
  std::vector<int> connections;
  std::vector<CallDone> waiting;
  const LoadResult result = RunLoad(
      plan,
      [&](const LoadCall& call, CallDone done) {
        connections.push_back(call.connection);
        waiting.push_back(std::move(done));
        if (waiting.size() < due) return;
        for (const CallDone& ended : waiting) ended({});
      },
      nullptr, time.clock());
  ASSERT_EQ(result.samples.size(), due);
  for (size_t i = 0; i < due; ++i) EXPECT_EQ(connections[i], static_cast<int>(i % 3));
  for (const LoadSample& sample : result.samples) EXPECT_EQ(sample.held(), absl::ZeroDuration());
}

TEST(RunLoad, AClosedLoopSendsTheNextWhenOneWasAnswered) {
  VirtualTime time;
  std::atomic<int> now = 0;
  const LoadResult result = RunBlocking(
      {.duration = absl::Milliseconds(100), .connections = 3}, 3,
      [&](size_t) -> CallResult {
        EXPECT_LE(++now, 3);
        time.Advance(absl::Milliseconds(5));
        --now;
        return {};
      },
      time.clock());
  // Answers end at 5, 10, ..., 100 ms; a call that was started before the end adds one.
  EXPECT_GE(result.samples.size(), 20);
  EXPECT_LE(result.samples.size(), 22);
  for (const LoadSample& sample : result.samples) EXPECT_EQ(sample.held(), absl::ZeroDuration());
}

TEST(RunLoad, AFailureEndsItsConnectionIfThePlanSaysSo) {
  std::vector<int> calls(2);
  const LoadResult result =
      RunLoad({.duration = absl::Hours(1), .connections = 2, .stop_after_failure = true},
              [&](const LoadCall& call, const CallDone& done) {
                const int last = call.connection == 0 ? 5 : 3;
                done({.status = ++calls[call.connection] == last ? absl::UnavailableError("gone")
                                                                 : absl::OkStatus()});
              });
  EXPECT_THAT(calls, ElementsAre(5, 3));
  EXPECT_EQ(result.FirstFailure(), absl::UnavailableError("gone"));
}

TEST(RunLoad, ReportsItsProgressToTheEnd) {
  VirtualTime time;
  std::vector<double> fractions;
  size_t ended = 0;
  const LoadResult result = RunLoad(
      {.duration = absl::Milliseconds(100), .connections = 1},
      [&](const LoadCall&, const CallDone& done) {
        time.Advance(absl::Milliseconds(40));
        done({});
      },
      [&](double done, size_t count) {
        fractions.push_back(done);
        ended = count;
      },
      time.clock());
  EXPECT_EQ(fractions.back(), 1.0);
  EXPECT_EQ(ended, result.samples.size());
  EXPECT_EQ(result.elapsed, absl::Milliseconds(120));
}

TEST(WarmUp, MakesOneCallOnEveryConnection) {
  std::vector<int> calls(4);
  const auto start = [&](const LoadCall& call, const CallDone& done) {
    ++calls[call.connection];
    done({.status = call.connection == 2 ? absl::NotFoundError("no model") : absl::OkStatus()});
  };
  EXPECT_EQ(WarmUp(4, start), absl::NotFoundError("no model"));
  EXPECT_THAT(calls, Each(1));
}

}  // namespace
}  // namespace saccade::client
