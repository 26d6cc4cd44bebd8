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

TEST(TopK, GivesEachClassAProbabilityOfItsOwn) {
  const std::vector<ClassScore> sigmoid = TopK({{0, std::log(3.0F)}, LogitFunction::kSigmoid}, 2);
  EXPECT_NEAR(sigmoid[0].probability, 0.75, 1e-6);
  EXPECT_NEAR(sigmoid[1].probability, 0.5, 1e-6);
  const std::vector<ClassScore> exp = TopK({{std::log(0.9F), std::log(0.8F), 0}, LogitFunction::kExp}, 3);
  EXPECT_EQ(exp[0].probability, 1);
  EXPECT_NEAR(exp[1].probability, 0.9, 1e-6) << "they need not sum up to 1";
  EXPECT_NEAR(exp[2].probability, 0.8, 1e-6);
}

TEST(Probabilities, AreThoseOfTopK) {
  for (const LogitFunction function :
       {LogitFunction::kSoftmax, LogitFunction::kSigmoid, LogitFunction::kExp}) {
    const Classification result = {{-1, -0.25F, -3}, function};
    const std::vector<double> all = Probabilities(result);
    ASSERT_EQ(all.size(), 3U);
    for (const ClassScore& one : TopK(result, 3))
      EXPECT_FLOAT_EQ(one.probability, static_cast<float>(all[static_cast<size_t>(one.index)]));
  }
  EXPECT_TRUE(Probabilities({}).empty());
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
