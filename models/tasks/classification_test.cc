#include "models/tasks/classification.h"

#include <gtest/gtest.h>

#include <cmath>

namespace saccade::models {
namespace {

TEST(TopK, OrdersByLogitAndThenByIndex) {
  const std::vector<ClassScore> top = TopK({{1, 3, 2, 3, -1}}, 3);
  ASSERT_EQ(top.size(), 3U);
  EXPECT_EQ(top[0].index, 1);
  EXPECT_EQ(top[1].index, 3);
  EXPECT_EQ(top[2].index, 2);
  EXPECT_EQ(top[2].logit, 2);
}

TEST(TopK, GivesSoftmaxOverAllClasses) {
  const std::vector<ClassScore> top = TopK({{0, std::log(3.0F)}}, 1);
  ASSERT_EQ(top.size(), 1U);
  EXPECT_NEAR(top[0].probability, 0.75, 1e-6);
}

TEST(TopK, SurvivesLargeLogits) {
  const std::vector<ClassScore> top = TopK({{3e38F, -3e38F, 3e38F}}, 3);
  EXPECT_FLOAT_EQ(top[0].probability, 0.5);
  EXPECT_EQ(top[2].probability, 0);
}

TEST(TopK, GivesNoMoreThanThereAre) {
  EXPECT_EQ(TopK({{1, 2}}, 5).size(), 2U);
  EXPECT_TRUE(TopK({{1, 2}}, 0).empty());
  EXPECT_TRUE(TopK({{1, 2}}, -1).empty());
  EXPECT_TRUE(TopK({}, 3).empty());
}

}  // namespace
}  // namespace saccade::models
