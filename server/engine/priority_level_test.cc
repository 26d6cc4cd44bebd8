#include "server/engine/priority_level.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

const BatcherOptions kThreeLevels{.priority_levels = 3, .default_priority_level = 2};

TEST(PriorityLevelTest, ItsLevelsAndTheDefaultAreTaken) {
  for (const int priority : {0, -1, -2, -3}) {
    EXPECT_TRUE(CheckPriorityLevel(priority, "m", kThreeLevels).ok()) << priority;
  }
}

TEST(PriorityLevelTest, OthersAreRefusedWithTheLevelsThereAre) {
  for (const int priority : {-4, 1, -1000}) {
    const absl::Status refused = CheckPriorityLevel(priority, "m", kThreeLevels);
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << priority;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("model 'm', 1 (highest) to 3"));
  }
  EXPECT_THAT(std::string(CheckPriorityLevel(-4, "m", kThreeLevels).message()),
              HasSubstr("priority: is level 4"));
}

TEST(PriorityLevelTest, WithoutLevelsAnyPriorityIsTaken) {
  for (const int priority : {-1000, 0, 100}) {
    EXPECT_TRUE(CheckPriorityLevel(priority, "m", BatcherOptions()).ok()) << priority;
  }
}

}  // namespace
}  // namespace saccade::server
