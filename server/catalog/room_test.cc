#include "server/catalog/room.h"

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

TEST(RoomTest, TheLeastRecentlyUsedGoFirst) {
  EXPECT_THAT(*PlanRoom(Models(), 100, 20, 100), ElementsAre("b"));
  EXPECT_THAT(*PlanRoom(Models(), 100, 21, 100), ElementsAre("b", "d"));
}

TEST(RoomTest, NothingGoesIfThereIsRoom) { EXPECT_THAT(*PlanRoom(Models(), 100, 20, 120), IsEmpty()); }

TEST(RoomTest, WhatIsKeptMakesNoRoom) {
  EXPECT_THAT(*PlanRoom(Models(), 100, 70, 100), ElementsAre("b", "d", "a"));
  const auto plan = PlanRoom(Models(), 100, 71, 100);
  EXPECT_TRUE(absl::IsFailedPrecondition(plan.status()));
  EXPECT_THAT(plan.status().message(), HasSubstr("beside 30 that cannot be freed"));
}

TEST(RoomTest, TheModelThatNeedsTheRoomHoldsMemoryToo) {
  // 5 of the 105 bytes are its own.
  EXPECT_THAT(*PlanRoom(Models(), 105, 20, 100), ElementsAre("b", "d"));
}

TEST(RoomTest, IdleModelsGo) {
  const IdlePlan plan = PlanIdle(Models(), absl::Seconds(2), kNow);
  EXPECT_THAT(plan.unload, ElementsAre("b"));
  EXPECT_EQ(plan.next, kNow) << "others may be idle now";
}

TEST(RoomTest, TheNextIdleModelIsAwaited) {
  const IdlePlan plan = PlanIdle(Models(), absl::Seconds(5), kNow);
  EXPECT_THAT(plan.unload, IsEmpty());
  EXPECT_EQ(plan.next, kNow + absl::Seconds(3));
  EXPECT_EQ(PlanIdle({}, absl::Seconds(5), kNow).next, absl::InfiniteFuture());
}

}  // namespace
}  // namespace saccade::server
