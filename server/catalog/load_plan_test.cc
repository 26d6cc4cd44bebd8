#include "server/catalog/load_plan.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const absl::Time kNow = absl::UnixEpoch() + absl::Hours(1);

// `a` was used last, `c` is kept.
std::vector<LoadedModel> Models() {
  return {{"a", 10, kNow},
          {"b", 20, kNow - absl::Seconds(2)},
          {"c", 30, kNow - absl::Hours(1), true},
          {"d", 40, kNow - absl::Seconds(1)}};
}

TEST(LoadPlanTest, TheLeastRecentlyUsedGoFirst) {
  EXPECT_THAT(*PlanUnloads(Models(), 100, 20, 100), ElementsAre("b"));
  EXPECT_THAT(*PlanUnloads(Models(), 100, 21, 100), ElementsAre("b", "d"));
}

TEST(LoadPlanTest, NothingGoesIfThereIsRoom) { EXPECT_THAT(*PlanUnloads(Models(), 100, 20, 120), IsEmpty()); }

TEST(LoadPlanTest, WhatIsKeptMakesNoRoom) {
  EXPECT_THAT(*PlanUnloads(Models(), 100, 70, 100), ElementsAre("b", "d", "a"));
  const auto plan = PlanUnloads(Models(), 100, 71, 100);
  EXPECT_TRUE(absl::IsFailedPrecondition(plan.status()));
  EXPECT_THAT(plan.status().message(), HasSubstr("beside 30 that cannot be freed"));
}

TEST(LoadPlanTest, TheModelThatNeedsTheRoomHoldsMemoryToo) {
  // 5 of the 105 bytes are its own.
  EXPECT_THAT(*PlanUnloads(Models(), 105, 20, 100), ElementsAre("b", "d"));
}

TEST(LoadPlanTest, AsManyLoadsRunAsThereAreCoresAndAtMostSixteen) {
  EXPECT_EQ(MaxLoads(0), 1);
  EXPECT_EQ(MaxLoads(3), 3);
  EXPECT_EQ(MaxLoads(100), 16);
}

TEST(LoadPlanTest, OnlySoManyLoadsRunAtTheSameTime) {
  RunningLoads running(2);
  EXPECT_TRUE(running.MayBegin(false));
  running.Begin("a", 10, false);
  EXPECT_TRUE(running.MayBegin(false));
  running.Begin("b", 20, false);
  EXPECT_FALSE(running.MayBegin(false));
  EXPECT_EQ(running.reserved(), 30);
  EXPECT_TRUE(running.IsRunning("b"));
  running.End("b");
  running.End("nothing of this name");
  EXPECT_TRUE(running.MayBegin(false));
  EXPECT_EQ(running.reserved(), 10);
  EXPECT_FALSE(running.IsRunning("b"));
}

TEST(LoadPlanTest, ALoadThatIsMeasuredRunsAlone) {
  RunningLoads running(3);
  running.Begin("a", 10, false);
  EXPECT_FALSE(running.MayBegin(true));
  EXPECT_TRUE(running.MayBegin(false));
  running.End("a");
  EXPECT_TRUE(running.MayBegin(true));
  running.Begin("b", 10, true);
  EXPECT_FALSE(running.MayBegin(true));
  EXPECT_FALSE(running.MayBegin(false));
  EXPECT_TRUE(RunningLoads(0).MayBegin(false)) << "at least one may always run";
}

// The models of Models() hold 100 bytes together, of which 30 are kept.
TEST(LoadPlanTest, LoadsThatRunHoldTheirMemoryAlready) {
  RunningLoads running(3);
  running.Begin("x", 20, false);
  const auto fits = PlanLoad(running, Models(), 100, 10, 130, false);
  ASSERT_TRUE(fits.ok());
  EXPECT_FALSE(fits->waits);
  EXPECT_THAT(fits->unload, IsEmpty());
  const auto unloads = PlanLoad(running, Models(), 100, 11, 130, false);
  ASSERT_TRUE(unloads.ok());
  EXPECT_FALSE(unloads->waits);
  EXPECT_THAT(unloads->unload, ElementsAre("b"));
}

TEST(LoadPlanTest, ALoadWaitsForRoomThatOthersMayLeave) {
  RunningLoads running(3);
  running.Begin("x", 20, false);
  EXPECT_FALSE(PlanLoad(running, Models(), 100, 80, 130, false)->waits) << "beside 30 and 20";
  const auto waits = PlanLoad(running, Models(), 100, 81, 130, false);
  ASSERT_TRUE(waits.ok());
  EXPECT_TRUE(waits->waits);
  EXPECT_THAT(waits->unload, IsEmpty()) << "nothing goes before the load can begin";
  EXPECT_TRUE(absl::IsFailedPrecondition(PlanLoad(running, Models(), 100, 101, 130, false).status()))
      << "there is no room even once x has gone";
}

TEST(LoadPlanTest, ALoadThatMayNotBeginUnloadsNothing) {
  RunningLoads running(1);
  running.Begin("x", 0, false);
  for (const int64_t max : {int64_t{0}, int64_t{100}}) {
    const auto plan = PlanLoad(running, Models(), 100, 20, max, false);
    ASSERT_TRUE(plan.ok());
    EXPECT_TRUE(plan->waits);
    EXPECT_THAT(plan->unload, IsEmpty());
  }
}

TEST(LoadPlanTest, IdleModelsGo) {
  const IdlePlan plan = PlanIdle(Models(), absl::Seconds(2), kNow);
  EXPECT_THAT(plan.unload, ElementsAre("b"));
  EXPECT_EQ(plan.next, kNow) << "others may be idle now";
}

TEST(LoadPlanTest, TheNextIdleModelIsAwaited) {
  const IdlePlan plan = PlanIdle(Models(), absl::Seconds(5), kNow);
  EXPECT_THAT(plan.unload, IsEmpty());
  EXPECT_EQ(plan.next, kNow + absl::Seconds(3));
  EXPECT_EQ(PlanIdle({}, absl::Seconds(5), kNow).next, absl::InfiniteFuture());
}

}  // namespace
}  // namespace saccade::server
