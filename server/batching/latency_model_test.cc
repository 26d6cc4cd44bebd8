#include "server/batching/latency_model.h"

#include <gtest/gtest.h>

namespace saccade::server {
namespace {

TEST(LatencyModelTest, KnowsNothingAtFirst) {
  LatencyModel model(4);
  EXPECT_FALSE(model.known());
  EXPECT_EQ(model.Upper(4), 0);
  EXPECT_EQ(model.LargestWithin(0, 4), 4) << "what is not known refuses nobody";
}

TEST(LatencyModelTest, LiesOnTheLineBetweenWhatWasSeen) {
  LatencyModel model(8);
  model.Learn(1, 10);
  EXPECT_DOUBLE_EQ(model.Mean(8), 80) << "company is not known to be cheaper";
  EXPECT_DOUBLE_EQ(model.fixed(), 0);
  model.Learn(8, 24);
  EXPECT_DOUBLE_EQ(model.Mean(4), 16);
  EXPECT_DOUBLE_EQ(model.Mean(5), 18);
  EXPECT_DOUBLE_EQ(model.each(), 2);
  EXPECT_DOUBLE_EQ(model.fixed(), 8);
}

TEST(LatencyModelTest, LearnsACurve) {
  LatencyModel model(8);
  model.Learn(8, 24);
  model.Learn(1, 10);
  EXPECT_DOUBLE_EQ(model.Mean(4), 16);
  for (int i = 0; i < 300; ++i) {
    model.Learn(1, 10);
    model.Learn(4, 20);
    model.Learn(8, 24);
  }
  EXPECT_NEAR(model.Mean(1), 10, 0.1);
  EXPECT_NEAR(model.Mean(4), 20, 0.1);
  EXPECT_NEAR(model.Mean(8), 24, 0.1);
  for (int i = 0; i < 300; ++i) model.Learn(5, 23);
  EXPECT_NEAR(model.Mean(5), 23, 0.1) << "between two knots, which it draws to itself";
}

TEST(LatencyModelTest, ASlowSpellConcernsAllSizes) {
  LatencyModel model(8);
  model.Learn(1, 10);
  model.Learn(8, 24);
  for (int i = 0; i < 100; ++i) model.Learn(1, 20);
  EXPECT_GT(model.Mean(8), 28);
}

// The initially guessed deviation shrinks while passes take a constant time, so Upper() approaches Mean().
TEST(LatencyModelTest, TheUpperBoundKnowsWhatItKeepsWithin) {
  LatencyModel model(8);
  model.Learn(1, 10);
  model.Learn(8, 24);
  EXPECT_EQ(model.LargestWithin(24, 8), 7) << "24 is the mean for 8, and not its upper bound";
  for (int i = 0; i < 500; ++i) model.Learn(8, 24);
  EXPECT_EQ(model.LargestWithin(24.1, 8), 8);
  EXPECT_EQ(model.LargestWithin(9, 8), 0);
  EXPECT_EQ(model.LargestWithin(1000, 6), 6);
}

TEST(LatencyModelTest, FollowsAMachineThatBecomesSlower) {
  LatencyModel model(1);
  for (int i = 0; i < 50; ++i) model.Learn(1, 10);
  for (int i = 0; i < 40; ++i) model.Learn(1, 20);
  EXPECT_NEAR(model.Mean(1), 20, 0.5);
}

TEST(LatencyModelTest, OneHangTellsLittle) {
  LatencyModel model(1);
  for (int i = 0; i < 50; ++i) model.Learn(1, 10);
  model.Learn(1, 1e9);
  EXPECT_LT(model.Mean(1), 14);
}

TEST(LatencyModelTest, OnePassAnswersADoubt) {
  LatencyModel model(8);
  model.Learn(1, 10);
  model.Learn(8, 24);
  const double before = model.Upper(8);
  EXPECT_FALSE(model.Doubt(0.1)) << "nobody believes that";
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(model.Doubt(1));
  EXPECT_LT(model.Upper(8), 0.7 * before);
  model.Learn(1, 10);
  EXPECT_DOUBLE_EQ(model.Mean(1), 10);
  EXPECT_DOUBLE_EQ(model.Mean(8), 24);
}

// Passes take 8 and 12 alternately: the mean plus three deviations is 16.
TEST(LatencyModelTest, TheUpperBoundCoversTheJitter) {
  LatencyModel model(2);
  for (int i = 0; i < 1000; ++i) model.Learn(1, i % 2 == 0 ? 8 : 12);
  EXPECT_NEAR(model.Mean(1), 10, 0.5);
  EXPECT_NEAR(model.Upper(1), 16, 1);
}

// This happens on GPUs, whose libraries choose an algorithm for each size.
TEST(LatencyModelTest, ALargerSizeMayBeQuicker) {
  LatencyModel model(8);
  model.Learn(1, 10);
  model.Learn(8, 24);
  for (int i = 0; i < 100000; ++i) {
    model.Learn(1, 10);
    model.Learn(2, 8);
  }
  EXPECT_NEAR(model.Mean(1), 10, 0.5);
  EXPECT_NEAR(model.Mean(2), 10, 0.5) << "planned with as if it took no less";
  EXPECT_NEAR(model.Mean(8), 24, 4);
}

// Noise and doubts about one size move the estimates of other sizes up and down, but these must not drift:
// each doubt comes when the estimate is high, and the next pass takes as long as before.
TEST(LatencyModelTest, OtherSizesStayWhereTheyWereHoweverLongOneIsComputed) {
  LatencyModel model(8);
  model.Learn(1, 10);
  model.Learn(8, 24);
  for (int i = 0; i < 20000; ++i) {
    model.Learn(1, i % 2 == 0 ? 8 : 12);
    if (model.Upper(1) > 15) model.Doubt(9);
  }
  EXPECT_NEAR(model.Mean(1), 10, 1.5);
  EXPECT_NEAR(model.Mean(8), 24, 3);
}

}  // namespace
}  // namespace saccade::server
