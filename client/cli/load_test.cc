#include "client/cli/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "absl/synchronization/mutex.h"
#include "client/cli/load_summary.h"

namespace saccade::client {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

const auto kNoProgress = [](double, size_t) {};

absl::StatusOr<AnyAnswer> AnswerIn(absl::Duration infer, absl::Duration total, int batch_size) {
  Classification answer;
  answer.timings = {
      .decode = {}, .queue = {}, .infer = infer, .encode = {}, .total = total, .round_trip = {}};
  answer.batch_size = batch_size;
  return answer;
}

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

TEST(DueTimes, AreAsManyAsTheRateSays) {
  const LoadPlan plan{.rate = 1000, .duration = absl::Seconds(20)};
  const auto times = DueTimes(plan);
  // The standard deviation of a Poisson process is the square root of its mean.
  EXPECT_NEAR(static_cast<double>(times.size()), 20'000, 5 * 142);
  EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
  EXPECT_LT(times.back(), plan.duration);
  EXPECT_EQ(DueTimes(plan), times);
  EXPECT_NE(DueTimes({.rate = 1000, .duration = absl::Seconds(20), .seed = 2}), times);
  EXPECT_TRUE(DueTimes({.rate = 0}).empty());
}

TEST(RunLoad, SendsEveryRequestOnce) {
  const LoadPlan plan{.rate = 2000, .duration = absl::Milliseconds(100), .in_flight = 4};
  absl::Mutex mutex;
  std::multiset<size_t> asked;
  const LoadResult result = RunLoad(
      plan,
      [&](size_t request) {
        const absl::MutexLock lock(&mutex);
        asked.insert(request);
        return AnswerIn({}, {}, 1);
      },
      kNoProgress);
  const size_t due = DueTimes(plan).size();
  EXPECT_EQ(result.samples.size(), due);
  EXPECT_EQ(asked.size(), due);
  EXPECT_EQ(std::set<size_t>(asked.begin(), asked.end()).size(), due);
}

TEST(RunLoad, NeverMoreAtOnceThanAllowedAndTheirWaitCounts) {
  const LoadPlan plan{.rate = 400, .duration = absl::Milliseconds(100), .in_flight = 2};
  VirtualTime time;
  std::atomic<int> now = 0;
  std::atomic<int> max = 0;
  const LoadResult result = RunLoad(
      plan,
      [&](size_t) {
        const int here = ++now;
        for (int seen = max; here > seen && !max.compare_exchange_weak(seen, here);) continue;
        time.Advance(absl::Milliseconds(10));
        --now;
        return AnswerIn({}, {}, 1);
      },
      kNoProgress, time.clock());
  EXPECT_LE(max, 2);
  // Each answer takes 10 ms. About 40 are due within 0.1 s, so the last one waits for nearly all others.
  const LoadSample& last = result.samples.back();
  EXPECT_GT(last.held, absl::Milliseconds(60));
  EXPECT_GE(last.latency, last.held + absl::Milliseconds(10));
}

TEST(RunLoad, WithoutARateTheNextIsSentWhenOneWasAnswered) {
  VirtualTime time;
  std::atomic<int> now = 0;
  const LoadResult result = RunLoad(
      {.duration = absl::Milliseconds(100), .in_flight = 3},
      [&](size_t) {
        EXPECT_LE(++now, 3);
        time.Advance(absl::Milliseconds(5));
        --now;
        return AnswerIn({}, {}, 1);
      },
      kNoProgress, time.clock());
  // Answers end at 5, 10, ..., 100 ms; a thread that took its request before the end adds one.
  EXPECT_GE(result.samples.size(), 20);
  EXPECT_LE(result.samples.size(), 22);
  for (const LoadSample& sample : result.samples) EXPECT_LT(sample.held, absl::Milliseconds(15));
}

TEST(SummariseLoad, TellsWhereTheTimeWent) {
  LoadResult result{.samples = {}, .elapsed = absl::Seconds(2)};
  for (int i = 0; i < 3; ++i) {
    LoadSample sample{.due = {},
                      .latency = absl::Milliseconds(30),
                      .held = absl::Milliseconds(i == 0 ? 5 : 0),
                      .status = absl::OkStatus()};
    sample.timings.decode = absl::Milliseconds(2);
    sample.timings.queue = absl::Milliseconds(3);
    sample.timings.infer = absl::Milliseconds(10);
    sample.timings.encode = absl::Microseconds(250);
    sample.timings.total = absl::Milliseconds(16);
    sample.batch_size = i == 2 ? 1 : 4;
    result.samples.push_back(sample);
  }
  result.samples.push_back({.due = {},
                            .latency = absl::Milliseconds(1),
                            .held = {},
                            .status = absl::ResourceExhaustedError("the queue is full")});
  const LoadSummary summary = SummariseLoad(result);
  EXPECT_EQ(summary.requests, 4);
  EXPECT_EQ(summary.answers, 3);
  EXPECT_DOUBLE_EQ(summary.per_second, 1.5);
  EXPECT_EQ(summary.held, 1);
  EXPECT_DOUBLE_EQ(summary.mean_batch_size, 3);
  EXPECT_THAT(summary.batch_sizes, ElementsAre(Pair(1, 1), Pair(4, 2)));
  EXPECT_THAT(summary.failures, ElementsAre(Pair("RESOURCE_EXHAUSTED", Pair(1, "the queue is full"))));
  ASSERT_EQ(summary.stages.size(), 8);
  EXPECT_EQ(summary.stages[0].name, "latency");
  for (size_t i = 0; i < 3; ++i) {
    absl::Duration sum;
    for (size_t stage = 1; stage < summary.stages.size(); ++stage) sum += summary.stages[stage].times[i];
    EXPECT_EQ(sum, summary.stages[0].times[i]);
  }
  EXPECT_EQ(summary.stages[6].name, "encode");
  EXPECT_EQ(summary.stages[6].latency.p99, absl::Microseconds(250));
  EXPECT_EQ(summary.stages[7].latency.p99, absl::Microseconds(750));
}

}  // namespace
}  // namespace saccade::client
