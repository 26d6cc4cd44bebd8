#include "client/load/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <utility>
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

// Returns when the calls of an open loop are due, since its start.
std::vector<absl::Duration> DueTimes(const LoadPlan& plan) {
  std::vector<absl::Duration> times;
  Arrivals arrivals(plan.rate, plan.seed);
  for (absl::Duration at = arrivals.Next(); at < plan.duration; at = arrivals.Next()) times.push_back(at);
  return times;
}

// A server on virtual time for an open loop. A call takes `took`, and ends while the load sleeps. While the
// load sleeps for its last call, all others end, however late; the last call, if it is sent, ends at once.
class VirtualServer {
 public:
  VirtualServer(const LoadPlan& plan, absl::Duration took)
      : plan_(plan), took_(took), last_due_(time_.Now() + DueTimes(plan).back()) {}

  LoadResult Run() {
    LoadClock clock = time_.clock();
    clock.sleep_until = [this](absl::Time due) { SleepUntil(due); };
    return RunLoad(plan_, [this](const LoadCall&, CallDone done) { Start(std::move(done)); }, nullptr, clock);
  }

 private:
  // The calls run on the load's own thread: it starts them, and ends them in its sleep.
  void Start(CallDone done) {
    if (is_last_slept_for_) return done({});
    calls_.emplace(time_.Now() + took_, std::move(done));
    EXPECT_LE(calls_.size(), static_cast<size_t>(plan_.max_in_flight));
  }

  void SleepUntil(absl::Time due) {
    const bool is_last = due == last_due_;
    while (!calls_.empty() && (is_last || calls_.begin()->first <= due)) {
      const auto first = calls_.extract(calls_.begin());
      time_.SleepUntil(first.key());
      first.mapped()({});
    }
    time_.SleepUntil(due);
    is_last_slept_for_ = is_last;
  }

  const LoadPlan plan_;
  const absl::Duration took_;
  VirtualTime time_;
  const absl::Time last_due_;
  std::multimap<absl::Time, CallDone> calls_;
  bool is_last_slept_for_ = false;
};

TEST(Arrivals, AreAsManyAsTheRateSays) {
  const LoadPlan plan{.rate = 1000, .duration = absl::Seconds(20), .seed = 1};
  const auto times = DueTimes(plan);
  // The standard deviation of a Poisson process is the square root of its mean.
  EXPECT_NEAR(static_cast<double>(times.size()), 20'000, 5 * 142);
  EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
  EXPECT_EQ(DueTimes(plan), times);
  EXPECT_NE(DueTimes({.rate = 1000, .duration = absl::Seconds(20), .seed = 2}), times);
}

TEST(RunLoad, SendsNoRequestTwice) {
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
  EXPECT_EQ(result.samples.size() + result.not_sent, DueTimes(plan).size());
  EXPECT_EQ(sent.size(), result.samples.size());
  EXPECT_EQ(std::set<size_t>(sent.begin(), sent.end()).size(), sent.size());
}

TEST(RunLoad, SendsAllThatIsDueIfTheServerIsFastEnough) {
  const LoadPlan plan{.rate = 400, .duration = absl::Milliseconds(100), .max_in_flight = 4};
  const LoadResult result = VirtualServer(plan, absl::Microseconds(10)).Run();
  EXPECT_EQ(result.samples.size(), DueTimes(plan).size());
  EXPECT_EQ(result.not_sent, 0);
}

TEST(RunLoad, AnOpenLoopSendsLateWhatExceedsItsBound) {
  const LoadPlan plan{.rate = 400, .duration = absl::Milliseconds(100), .max_in_flight = 2};
  const absl::Duration took = absl::Milliseconds(10);
  const LoadResult result = VirtualServer(plan, took).Run();
  // Each answer takes 10 ms, so about half of the 40 requests that are due within 0.1 s are sent, in their
  // order.
  const std::vector<absl::Duration> due = DueTimes(plan);
  ASSERT_GT(result.samples.size(), 10U);
  for (size_t i = 0; i < result.samples.size(); ++i) {
    EXPECT_EQ(result.samples[i].due, due[i]);
    EXPECT_EQ(result.samples[i].latency(), result.samples[i].held() + took);
  }
  EXPECT_FALSE(result.samples.front().waited);
  EXPECT_TRUE(result.samples.back().waited);
  EXPECT_GT(result.samples.back().held(), took);
}

TEST(RunLoad, AnOpenLoopSendsNothingAfterItsEnd) {
  const LoadPlan plan{.rate = 400, .duration = absl::Milliseconds(100), .max_in_flight = 2};
  const absl::Duration took = absl::Milliseconds(10);
  const LoadResult result = VirtualServer(plan, took).Run();
  EXPECT_GT(result.not_sent, 0U);
  EXPECT_EQ(result.samples.size() + result.not_sent, DueTimes(plan).size());
  for (const LoadSample& sample : result.samples) EXPECT_LT(sample.sent, plan.duration);
  EXPECT_LT(result.elapsed, plan.duration + took);
}

TEST(RunLoad, AnOpenLoopWaitsForTheCallsInFlightAndSendsNoOther) {
  const LoadPlan plan{.rate = 1000, .duration = absl::Milliseconds(100), .max_in_flight = 1};
  const LoadResult result = VirtualServer(plan, absl::Hours(1)).Run();
  const std::vector<absl::Duration> due = DueTimes(plan);
  ASSERT_EQ(result.samples.size(), 1U);
  EXPECT_EQ(result.not_sent, due.size() - 1);
  EXPECT_EQ(result.elapsed, due.front() + absl::Hours(1));
}

TEST(RunLoad, ASenderThatIsTooSlowStopsAtTheEnd) {
  VirtualTime time;
  // Starting a call takes 10 ms here, and a call is due every millisecond.
  const LoadPlan plan{.rate = 1000, .duration = absl::Milliseconds(100)};
  const LoadResult result = RunLoad(
      plan,
      [&](const LoadCall&, const CallDone& done) {
        time.Advance(absl::Milliseconds(10));
        done({});
      },
      nullptr, time.clock());
  ASSERT_FALSE(result.samples.empty());
  EXPECT_LE(result.samples.size(), 11U);
  EXPECT_EQ(result.samples.size() + result.not_sent, DueTimes(plan).size());
}

TEST(RunLoad, ACallThatWasDueInTimeIsSentIfTheSenderWakesAfterTheEnd) {
  VirtualTime time;
  LoadPlan plan{.rate = 100, .duration = absl::Milliseconds(200)};
  const size_t due = DueTimes(plan).size();
  plan.duration = DueTimes(plan).back() + absl::Nanoseconds(1);
  LoadClock late = time.clock();
  late.sleep_until = [wait = late.sleep_until](absl::Time wake) { wait(wake + absl::Microseconds(50)); };
  const LoadResult result =
      RunLoad(plan, [](const LoadCall&, const CallDone& done) { done({}); }, nullptr, late);
  EXPECT_EQ(result.samples.size(), due);
  EXPECT_EQ(result.not_sent, 0U);
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
  const size_t due = DueTimes(plan).size();
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
