#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "server/simulation/fleet/autoscaler.h"
#include "server/simulation/fleet/rollout.h"
#include "server/simulation/fleet/summary.h"

namespace saccade::server::simulation {
namespace {

FleetOptions Small(double load, Nanos until) {
  FleetOptions options;
  options.replicas = 12;
  options.clients = 10;
  options.rate = load * 23.5 * options.replicas;
  options.until = until;
  return options;
}

TEST(AutoscalerTest, DecidesAsKubernetesDoes) {
  const AutoscalerOptions options = {.target = 0.7, .min_replicas = 3, .max_replicas = 100};
  EXPECT_EQ(Autoscaler::Desired(options, 10, 0.7), 10);
  // Within the tolerance of a tenth.
  EXPECT_EQ(Autoscaler::Desired(options, 10, 0.76), 10);
  EXPECT_EQ(Autoscaler::Desired(options, 10, 1.4), 20);
  EXPECT_EQ(Autoscaler::Desired(options, 10, 0.35), 5);
  EXPECT_EQ(Autoscaler::Desired(options, 10, 0), 3);
  // At most four times as many at once, and never more than the maximum.
  EXPECT_EQ(Autoscaler::Desired(options, 10, 7), 40);
  EXPECT_EQ(Autoscaler::Desired(options, 90, 1.4), 100);
}

TEST(AutoscalerTest, DemandFindsTheSizeAtOnceAndProcessorTimeDoesNot) {
  int wanted[2] = {};
  for (const bool demand : {false, true}) {
    Fleet fleet(Small(3, 70 * kSecond));
    using Metric = AutoscalerOptions::Metric;
    Autoscaler autoscaler({.metric = demand ? Metric::kDemand : Metric::kUtilization}, &fleet);
    autoscaler.Begin();
    fleet.At(16 * kSecond, [&](Nanos) { wanted[demand] = fleet.Wanted(); });
    fleet.Run();
  }
  // Three times what twelve can do, at 0.7 of it each.
  EXPECT_NEAR(wanted[true], 12 * 3 / 0.7, 6);
  // Full cores say no more than that they are full.
  EXPECT_LE(wanted[false], 12 / 0.7 + 1);
}

TEST(RolloutTest, AGoodVersionReplacesAllAndLosesNoCall) {
  for (const bool canary : {false, true}) {
    Fleet fleet(Small(0.5, 500 * kSecond));
    RolloutOptions options = {.build = {.version = 2}};
    if (canary) options.steps = {0.1, 0.5};
    options.pause = 60 * kSecond;
    Rollout rollout(options, &fleet);
    fleet.At(5 * kSecond, [&](Nanos now) { rollout.Begin(now); });
    fleet.Run();
    EXPECT_FALSE(rollout.undone());
    const std::vector<int> ready = fleet.Ready();
    EXPECT_EQ(ready.size(), 12u);
    for (const int one : ready) EXPECT_EQ(fleet.replica(one).build().version, 2);
    int64_t failed = 0;
    for (const Second& second : fleet.seconds()) failed += second.calls - second.in_time;
    EXPECT_EQ(failed, 0) << canary;
  }
}

TEST(RolloutTest, ABadVersionIsUndoneByItsAnalysis) {
  for (const Build& bad : {Build{.version = 2, .failing = 0.3}, Build{.version = 2, .slow = 8}}) {
    Fleet fleet(Small(0.6, 400 * kSecond));
    RolloutOptions options = {.build = bad, .steps = {0.1, 0.5}};
    Rollout rollout(options, &fleet);
    fleet.At(5 * kSecond, [&](Nanos now) { rollout.Begin(now); });
    fleet.Run();
    EXPECT_TRUE(rollout.undone());
    const std::vector<int> ready = fleet.Ready();
    EXPECT_EQ(ready.size(), 12u);
    for (const int one : ready) EXPECT_EQ(fleet.replica(one).build().version, 1);
  }
}

TEST(RolloutTest, ASlowdownUndoesAVersionWhoseRequestsAreInTime) {
  for (const double slow : {1.0, 1.6}) {
    Fleet fleet(Small(0.3, 400 * kSecond));
    Rollout rollout({.build = {.version = 2, .slow = slow}, .steps = {0.1}}, &fleet);
    fleet.At(5 * kSecond, [&](Nanos now) { rollout.Begin(now); });
    fleet.Run();
    EXPECT_EQ(rollout.undone(), slow > 1) << slow;
    EXPECT_EQ(fleet.TallyOf(2).late, 0);
  }
}

TEST(VersionTallyTest, TheSlowestHundredthIsThatBetweenTwoTallies) {
  VersionTally tally;
  for (int i = 0; i < 100; ++i) tally.CountTime(500 * kSecond);
  const VersionTally before = tally;
  EXPECT_EQ(SlowestHundredth(before, tally), Nanos());
  for (int i = 1; i <= 1000; ++i) tally.CountTime(i * kMillisecond);
  EXPECT_NEAR(static_cast<double>(SlowestHundredth(before, tally) / kMillisecond), 990, 50);
}

TEST(RolloutTest, TheAnalysisMeasuresWhenTheChartsDoes) {
  Fleet fleet(Small(0.6, 300 * kSecond));
  Rollout rollout({.build = {.version = 2, .failing = 0.3}, .steps = {0.1, 0.5}}, &fleet);
  fleet.At(5 * kSecond, [&](Nanos now) { rollout.Begin(now); });
  fleet.Run();
  // Two minutes after the first pods are ready, which takes 45 s, and a minute later.
  EXPECT_EQ(rollout.undone_at(), (5 + 45 + 120 + 60) * kSecond);
}

TEST(SummaryTest, RecoveryIsCountedFromTheFault) {
  const FleetSummary summary(
      {.name = "outage", .options = Small(0.5, 30 * kSecond), .script = [](Fleet& fleet) {
         fleet.At(10 * kSecond, [&fleet](Nanos) {
           for (int i = 0; i < 9; ++i) fleet.replica(i).set_slowdown(1000);
         });
       }});
  EXPECT_GT(summary.OfBound(2, 8), 0.99);
  EXPECT_LT(summary.OfBound(11, 15), 0.9);
  EXPECT_GT(summary.RecoveredAfter(10, 0.999), 2);
  EXPECT_EQ(summary.RecoveredAfter(2, 0.9), 0);
}

}  // namespace
}  // namespace saccade::server::simulation
