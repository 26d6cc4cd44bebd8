#include "server/simulation/sizing/estimate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

namespace saccade::server::simulation {
namespace {

// Batches of b take `fixed` + b * `each`.
MeasuredModel ModelOf(Nanos fixed, Nanos each, int64_t max_batch_size) {
  MeasuredModel model;
  model.cores = 8;
  auto& passes = model.passes.emplace_back();
  for (int64_t size = 1; size <= max_batch_size; ++size)
    passes.push_back(fixed + static_cast<double>(size) * each);
  return model;
}

constexpr Configuration kOne = {.replicas = 1, .instances = 1, .max_batch_size = 1, .max_queue_size = 10'000};

// The probability that a customer of an M/D/1 queue waits at most `wait` services, at this load (Erlang).
double WaitsAtMost(double wait, double load) {
  double sum = 0;
  double factorial = 1;
  for (int k = 0; k <= static_cast<int>(std::floor(wait)); ++k) {
    if (k > 0) factorial *= k;
    const double left = load * (wait - k);
    sum += std::pow(-left, k) / factorial * std::exp(left);
  }
  return (1 - load) * sum;
}

// The q-quantile of the time from arrival to end, in services.
double QuantileOfMD1(double q, double load) {
  double low = 0;
  double high = 25;
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    (WaitsAtMost(middle, load) < q ? low : high) = middle;
  }
  return 1 + high;
}

TEST(EstimateTest, BatchesOfOneAreAnMD1Queue) {
  const MeasuredModel model = ModelOf(Nanos(), 10 * kMillisecond, 1);
  for (const double load : {0.3, 0.5, 0.7}) {
    const Estimate estimate =
        EstimateOf(model, {.rate = 100 * load}, kOne, {.p99 = kSecond}, {.requests = 400'000});
    EXPECT_NEAR(ToMilliseconds(estimate.p99) / (10 * QuantileOfMD1(0.99, load)), 1, 0.03) << load;
    EXPECT_NEAR(ToMilliseconds(estimate.p50) / (10 * QuantileOfMD1(0.5, load)), 1, 0.03) << load;
    EXPECT_NEAR(estimate.busy, load, 0.01);
    EXPECT_NEAR(estimate.demand, load, 0.01);
    EXPECT_NEAR(estimate.goodput, 100 * load, load);
    EXPECT_EQ(estimate.mean_batch, 1);
  }
}

TEST(EstimateTest, MoreLoadTakesLonger) {
  const MeasuredModel model = ModelOf(4 * kMillisecond, kMillisecond, 8);
  for (const int64_t bound : {1, 8}) {
    Configuration configuration = kOne;
    configuration.max_batch_size = bound;
    Estimate before;
    for (const double rate : {20, 60, 100, 140, 180}) {
      const Estimate estimate = EstimateOf(model, {.rate = rate}, configuration, {.p99 = kSecond});
      EXPECT_GT(estimate.p99, before.p99) << rate;
      EXPECT_GE(estimate.busy, before.busy) << rate;
      before = estimate;
    }
  }
}

TEST(EstimateTest, BatchesRaiseTheCapacity) {
  const MeasuredModel model = ModelOf(9 * kMillisecond, kMillisecond, 8);
  Configuration eight = kOne;
  eight.max_batch_size = 8;
  // 100 of one per second, and 470 of eight.
  EXPECT_GT(EstimateOf(model, {.rate = 300}, kOne, {}).p99, kSecond);
  const Estimate estimate = EstimateOf(model, {.rate = 300}, eight, {});
  EXPECT_LT(estimate.p99, 50 * kMillisecond);
  EXPECT_GT(estimate.mean_batch, 2);
}

TEST(EstimateTest, RejectedRequestsAreSlowerThanAllOthers) {
  const MeasuredModel model = ModelOf(Nanos(), 10 * kMillisecond, 1);
  Configuration small = kOne;
  small.max_queue_size = 2;
  const Estimate overloaded = EstimateOf(model, {.rate = 200}, small, {});
  EXPECT_EQ(overloaded.p99, kNever);
  EXPECT_NEAR(overloaded.queue_full, 0.5, 0.03);
  EXPECT_NEAR(overloaded.answered, 0.5, 0.03);
  const Estimate hurried = EstimateOf(model, {.rate = 200}, kOne, {.deadline = 30 * kMillisecond});
  EXPECT_EQ(hurried.p99, kNever);
  EXPECT_GT(hurried.too_late, 0.4);
  EXPECT_EQ(hurried.queue_full, 0);
}

TEST(EstimateTest, TimeOutsideIsAdded) {
  MeasuredModel model = ModelOf(Nanos(), 10 * kMillisecond, 1);
  const LatencyGoal goal = {.p99 = 14 * kMillisecond};
  EXPECT_NEAR(EstimateOf(model, {.rate = 50, .cv = 0}, kOne, goal).goodput, 50, 1);
  model.outside = 5 * kMillisecond;
  const Estimate estimate = EstimateOf(model, {.rate = 50, .cv = 0}, kOne, goal);
  EXPECT_NEAR(ToMilliseconds(estimate.p99), 15, 0.1);
  EXPECT_EQ(estimate.goodput, 0) << "15 ms are more than 14";
  EXPECT_FALSE(estimate.Meets(goal));
}

TEST(EstimateTest, ReplicasShareTheTraffic) {
  const MeasuredModel model = ModelOf(Nanos(), 10 * kMillisecond, 1);
  Configuration two = kOne;
  two.replicas = 2;
  const Estimate one = EstimateOf(model, {.rate = 60}, kOne, {});
  const Estimate both = EstimateOf(model, {.rate = 120}, two, {});
  EXPECT_EQ(one.p99, both.p99);
  EXPECT_DOUBLE_EQ(2 * one.goodput, both.goodput);
}

TEST(EstimateTest, RecordedTrafficIsReplayed) {
  MeasuredModel model = ModelOf(Nanos(), 10 * kMillisecond, 1);
  model.passes.push_back({30 * kMillisecond});
  // Pairs, of which the second waits for the first.
  auto recorded = std::make_shared<std::vector<Arrival>>();
  for (int i = 0; i < 100; ++i) {
    recorded->push_back({.at = i * kSecond, .bucket = 1});
    recorded->push_back({.at = i * kSecond, .bucket = 0});
  }
  const Estimate estimate =
      EstimateOf(model, {.rate = 2, .mix = {0.5, 0.5}, .recorded = recorded}, kOne, {}, {.requests = 1000});
  EXPECT_NEAR(ToMilliseconds(estimate.p50), 30, 0.2);
  EXPECT_NEAR(ToMilliseconds(estimate.p99), 40, 0.2);
  EXPECT_NEAR(estimate.busy, 0.04, 0.001);
  // Ten times as fast.
  const Estimate faster =
      EstimateOf(model, {.rate = 20, .mix = {0.5, 0.5}, .recorded = recorded}, kOne, {}, {.requests = 1000});
  EXPECT_NEAR(faster.busy, 0.4, 0.01);
}

// Appends `count` requests with equal gaps, the first of them a gap after the last of `arrivals`.
void AppendEvenly(int count, double rate, std::vector<Arrival>* arrivals) {
  const Nanos last = arrivals->empty() ? Nanos() : arrivals->back().at;
  for (int i = 1; i <= count; ++i) arrivals->push_back({.at = last + FromSeconds(i / rate)});
}

// The parts of a recording are so many requests at so many per second. It is played as fast as it was
// recorded.
Traffic Recorded(const std::vector<std::pair<int, double>>& parts) {
  auto recorded = std::make_shared<std::vector<Arrival>>();
  for (const auto& [count, rate] : parts) AppendEvenly(count, rate, recorded.get());
  const double rate =
      static_cast<double>(recorded->size() - 1) * 1e9 / (recorded->back().at - recorded->front().at).count();
  return {.rate = rate, .recorded = recorded};
}

TEST(EstimateTest, AllOfARecordingIsPlayed) {
  const MeasuredModel model = ModelOf(Nanos(), 20 * kMillisecond, 1);
  const LatencyGoal goal = {.p99 = 200 * kMillisecond};
  // One replica computes 50 per second.
  const Traffic traffic = Recorded({{30'000, 10}, {30'000, 100}});
  const Estimate one = EstimateOf(model, traffic, kOne, goal);
  EXPECT_EQ(one.requests, 60'000);
  EXPECT_EQ(one.replayed, 1);
  EXPECT_FALSE(one.Meets(goal));
  EXPECT_GT(one.queue_full, 0.05);
  Configuration three = kOne;
  three.replicas = 3;
  const Estimate enough = EstimateOf(model, traffic, three, goal);
  EXPECT_TRUE(enough.Meets(goal));
  EXPECT_EQ(enough.requests, 40'000) << "two whole rounds of 20,000";
}

TEST(EstimateTest, TheBeginningOfARecordingThatIsPlayedOnceCounts) {
  const MeasuredModel model = ModelOf(Nanos(), 20 * kMillisecond, 1);
  const LatencyGoal goal = {.p99 = 200 * kMillisecond};
  const Estimate estimate =
      EstimateOf(model, Recorded({{100, 100}, {900, 10}}), kOne, goal, {.requests = 1000});
  EXPECT_EQ(estimate.requests, 1000);
  EXPECT_GT(ToMilliseconds(estimate.p99), 800);
}

TEST(EstimateTest, OfALongRecordingTheBusiestStretchIsPlayed) {
  const MeasuredModel model = ModelOf(Nanos(), 20 * kMillisecond, 1);
  const LatencyGoal goal = {.p99 = 200 * kMillisecond};
  const Traffic traffic = Recorded({{2000, 10}, {1000, 45}, {2000, 10}});
  for (const int replicas : {1, 2}) {
    Configuration configuration = kOne;
    configuration.replicas = replicas;
    const Estimate estimate =
        EstimateOf(model, traffic, configuration, goal, {.requests = 300, .max_recorded = 400});
    EXPECT_EQ(estimate.requests, 400);
    EXPECT_DOUBLE_EQ(estimate.replayed, 400.0 * replicas / 5000);
    EXPECT_NEAR(estimate.busy, 0.9 / replicas, 0.02) << replicas;
  }
}

TEST(EstimateTest, SlowerPassesOfABucketCount) {
  MeasuredModel model = ModelOf(Nanos(), 10 * kMillisecond, 1);
  model.passes.push_back({40 * kMillisecond});
  const LatencyGoal goal = {.p99 = kSecond};
  const Estimate rare = EstimateOf(model, {.rate = 5, .mix = {0.999, 0.001}}, kOne, goal);
  const Estimate often = EstimateOf(model, {.rate = 5, .mix = {0.5, 0.5}}, kOne, goal);
  EXPECT_LT(rare.p99, 20 * kMillisecond);
  EXPECT_GT(often.p99, 40 * kMillisecond);
}

TEST(EstimateTest, EqualSeedsAreEqual) {
  MeasuredModel model = ModelOf(4 * kMillisecond, kMillisecond, 8);
  model.deviation = 0.2;
  Configuration four = kOne;
  four.max_batch_size = 4;
  const auto p99 = [&](uint64_t seed) {
    return EstimateOf(model, {.rate = 150}, four, {}, {.requests = 5000, .seed = seed}).p99;
  };
  EXPECT_EQ(p99(3), p99(3));
  EXPECT_NE(p99(3), p99(4));
}

}  // namespace
}  // namespace saccade::server::simulation
