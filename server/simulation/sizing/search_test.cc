#include "server/simulation/sizing/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace saccade::server::simulation {
namespace {

using testing::HasSubstr;

MeasuredModel ModelOf(Nanos fixed, Nanos each, int64_t max_batch_size, int cores) {
  MeasuredModel model;
  model.cores = cores;
  auto& passes = model.passes.emplace_back();
  for (int64_t size = 1; size <= max_batch_size; ++size)
    passes.push_back(fixed + static_cast<double>(size) * each);
  return model;
}

constexpr EstimateOptions kQuick = {.requests = 10'000};

TEST(SearchTest, TheSmallestHoldsAndNoneIsSmaller) {
  const MeasuredModel model = ModelOf(2 * kMillisecond, 8 * kMillisecond, 4, 8);
  const Traffic traffic = {.rate = 200};
  const LatencyGoal goal = {.p99 = 60 * kMillisecond};
  const auto found = FindSmallest({model}, traffic, goal, {}, kQuick);
  ASSERT_TRUE(found.ok()) << found.status();
  const Configuration& chosen = found->configuration;
  EXPECT_EQ(chosen.replicas, 1);
  EXPECT_LE(found->estimate.p99, goal.p99);
  EXPECT_EQ(EstimateOf(model, traffic, chosen, goal, kQuick).p99, found->estimate.p99);
  ASSERT_GT(chosen.instances, 1) << "200 per second of 8 ms each are more than one second";
  Configuration less = chosen;
  --less.instances;
  for (less.max_batch_size = 1; less.max_batch_size <= 4; ++less.max_batch_size)
    EXPECT_FALSE(EstimateOf(model, traffic, less, goal, kQuick).Meets(goal)) << less.max_batch_size;
}

TEST(SearchTest, ARateAboveAllCoresTakesReplicas) {
  const MeasuredModel model = ModelOf(Nanos(), 10 * kMillisecond, 1, 2);
  const LatencyGoal goal = {.p99 = 50 * kMillisecond};
  const auto found = FindSmallest({model}, {.rate = 700}, goal, {}, kQuick);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_GE(found->configuration.replicas, 4) << "two cores compute 200 per second";
  EXPECT_LE(found->configuration.replicas, 6);
  const auto bounded = FindSmallest({model}, {.rate = 700}, goal, {.max_replicas = 3}, kQuick);
  ASSERT_EQ(bounded.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(
      std::string(bounded.status().message()),
      HasSubstr("3 replicas do not hold 700 requests per second within 50 ms: all 2 cores of one compute "
                "at most 200 per second; expected at least 4 replicas (--max-replicas)"));
}

TEST(SearchTest, AWishBelowOnePassIsRefused) {
  MeasuredModel model = ModelOf(Nanos(), 10 * kMillisecond, 4, 2);
  model.outside = 2 * kMillisecond;
  const auto found = FindSmallest({model}, {.rate = 1}, {.p99 = 11 * kMillisecond}, {}, kQuick);
  ASSERT_EQ(found.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(found.status().message()),
              HasSubstr("one request alone takes 12 ms, of which 2 ms are outside of the pass, so no "
                        "configuration answers within 11 ms; expected --p99 of more than 12 ms"));
}

TEST(SearchTest, ARareSlowBucketDoesNotRefuseAWish) {
  MeasuredModel model = ModelOf(Nanos(), 10 * kMillisecond, 1, 2);
  model.passes.push_back({40 * kMillisecond});
  const LatencyGoal goal = {.p99 = 30 * kMillisecond};
  EXPECT_TRUE(FindSmallest({model}, {.rate = 2, .mix = {0.998, 0.002}}, goal, {}, kQuick).ok());
  EXPECT_FALSE(FindSmallest({model}, {.rate = 2, .mix = {0.9, 0.1}}, goal, {}, kQuick).ok());
}

TEST(SearchTest, TheCheaperMeasurementIsChosen) {
  MeasuredModel exact = ModelOf(Nanos(), 10 * kMillisecond, 1, 4);
  MeasuredModel quick = ModelOf(Nanos(), 4 * kMillisecond, 1, 4);
  quick.precision = "bf16";
  // Faster passes on twice the cores are not cheaper.
  MeasuredModel wide = ModelOf(Nanos(), 6 * kMillisecond, 1, 4);
  wide.threads = 2;
  const LatencyGoal goal = {.p99 = 60 * kMillisecond};
  EXPECT_EQ(FindSmallest({exact, quick}, {.rate = 120}, goal, {}, kQuick)->model, 1U);
  EXPECT_EQ(FindSmallest({wide, exact}, {.rate = 40}, goal, {}, kQuick)->model, 1U);
}

TEST(SearchTest, OfEqualCostsTheShortestP99IsChosen) {
  MeasuredModel exact = ModelOf(Nanos(), 10 * kMillisecond, 1, 4);
  MeasuredModel quick = ModelOf(Nanos(), 4 * kMillisecond, 1, 4);
  quick.precision = "bf16";
  const LatencyGoal goal = {.p99 = 60 * kMillisecond};
  const auto last = FindSmallest({exact, quick}, {.rate = 10}, goal, {}, kQuick);
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(last->configuration.instances, 1) << "one instance of either suffices";
  EXPECT_EQ(last->model, 1U);
  EXPECT_EQ(FindSmallest({quick, exact}, {.rate = 10}, goal, {}, kQuick)->model, 0U);
}

TEST(SearchTest, DecodingNeedsCores) {
  MeasuredModel model = ModelOf(Nanos(), kMillisecond, 1, 2);
  const LatencyGoal goal = {.p99 = 50 * kMillisecond};
  EXPECT_EQ(FindSmallest({model}, {.rate = 300}, goal, {}, kQuick)->configuration.replicas, 1);
  model.decode = 10 * kMillisecond;
  EXPECT_GE(FindSmallest({model}, {.rate = 300}, goal, {}, kQuick)->configuration.replicas, 2)
      << "decoding alone takes three cores";
}

Breaking BreakingOf(const MeasuredModel& model, const Traffic& traffic, const LatencyGoal& goal,
                    const Limits& limits = {}) {
  Configuration one;
  one.max_batch_size = model.max_batch_size();
  one.max_queue_size = QueueBound(model, one, goal, limits);
  return FindBreaking(model, traffic, one, goal, limits, kQuick);
}

TEST(SearchTest, WhatBreaksFirst) {
  const MeasuredModel model = ModelOf(Nanos(), 10 * kMillisecond, 1, 1);
  const Breaking cores = BreakingOf(model, {.rate = 20, .cv = 0}, {.p99 = kSecond});
  EXPECT_EQ(cores.what, "cores");
  EXPECT_GT(cores.holds, 80);
  EXPECT_LT(cores.breaks, 105);
  EXPECT_GT(cores.breaks, cores.holds);
  EXPECT_LT(cores.breaks, 1.03 * cores.holds);
  EXPECT_TRUE(cores.before.Meets({.p99 = kSecond}));
  EXPECT_FALSE(cores.after.Meets({.p99 = kSecond}) && cores.after.busy < 0.9);

  EXPECT_EQ(BreakingOf(model, {.rate = 1}, {.p99 = 45 * kMillisecond}).what, "bursts");
  Configuration narrow;
  narrow.max_queue_size = 2;
  EXPECT_EQ(FindBreaking(model, {.rate = 1}, narrow, {.p99 = kSecond}, {}, kQuick).what, "queue");
  EXPECT_EQ(BreakingOf(model, {.rate = 1}, {.p99 = kSecond, .deadline = 40 * kMillisecond}).what, "deadline");
  EXPECT_EQ(BreakingOf(model, {.rate = 1}, {.p99 = kSecond}, {.max_held_items = 2}).what, "memory");
}

TEST(SearchTest, EveryConfigurationBreaks) {
  // One of eight cores computes, so that the cores of the machine do not end the search.
  const MeasuredModel model = ModelOf(Nanos(), kMillisecond, 1, 8);
  // 10,000 times the wished rate.
  const Breaking rare = BreakingOf(model, {.rate = 0.1}, {.p99 = kSecond});
  EXPECT_EQ(rare.what, "cores");
  EXPECT_GT(rare.holds, 900);
  EXPECT_GT(rare.breaks, rare.holds);
  EXPECT_LT(rare.breaks, 1050);
  // All requests of the simulation fit in the queue, and are answered within an hour.
  const Breaking patient = BreakingOf(model, {.rate = 100}, {.p99 = 3600 * kSecond});
  EXPECT_EQ(patient.what, "cores");
  EXPECT_GT(patient.holds, 900);
  EXPECT_GT(patient.breaks, patient.holds);
  EXPECT_LT(patient.breaks, 1050);
}

TEST(SearchTest, QueueBoundIsWhatIsComputedInTime) {
  MeasuredModel model = ModelOf(Nanos(), 10 * kMillisecond, 4, 2);
  Configuration configuration = {.replicas = 1, .instances = 2, .max_batch_size = 1, .max_queue_size = 1};
  EXPECT_EQ(QueueBound(model, configuration, {.p99 = 100 * kMillisecond}, {}), 20);
  model.outside = 50 * kMillisecond;
  EXPECT_EQ(QueueBound(model, configuration, {.p99 = 100 * kMillisecond}, {}), 10);
  configuration.max_batch_size = 4;
  EXPECT_EQ(QueueBound(model, configuration, {.p99 = 50 * kMillisecond}, {}), 4) << "a full batch";
  EXPECT_EQ(QueueBound(model, configuration, {.p99 = 5 * kSecond}, {.max_held_items = 7}), 7);
}

}  // namespace
}  // namespace saccade::server::simulation
