#include "server/batching/latency_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace saccade::server {
namespace {

TEST(LatencyModelTest, KnowsNothingAtFirst) {
  LatencyModel model(4);
  EXPECT_FALSE(model.known());
  EXPECT_EQ(model.Upper(4).count(), 0);
  EXPECT_EQ(model.LargestWithin(Nanos(0), 4), 4) << "what is not known refuses nobody";
}

TEST(LatencyModelTest, LiesOnTheLineBetweenWhatWasSeen) {
  LatencyModel model(8);
  model.Learn(1, Nanos(10));
  EXPECT_DOUBLE_EQ(model.Mean(8).count(), 80) << "company is not known to be cheaper";
  EXPECT_DOUBLE_EQ(model.fixed().count(), 0);
  model.Learn(8, Nanos(24));
  EXPECT_DOUBLE_EQ(model.Mean(4).count(), 16);
  EXPECT_DOUBLE_EQ(model.Mean(5).count(), 18);
  EXPECT_DOUBLE_EQ(model.each().count(), 2);
  EXPECT_DOUBLE_EQ(model.fixed().count(), 8);
}

TEST(LatencyModelTest, LearnsACurve) {
  LatencyModel model(8);
  model.Learn(8, Nanos(24));
  model.Learn(1, Nanos(10));
  EXPECT_DOUBLE_EQ(model.Mean(4).count(), 16);
  for (int i = 0; i < 300; ++i) {
    model.Learn(1, Nanos(10));
    model.Learn(4, Nanos(20));
    model.Learn(8, Nanos(24));
  }
  EXPECT_NEAR(model.Mean(1).count(), 10, 0.1);
  EXPECT_NEAR(model.Mean(4).count(), 20, 0.1);
  EXPECT_NEAR(model.Mean(8).count(), 24, 0.1);
  for (int i = 0; i < 300; ++i) model.Learn(5, Nanos(23));
  EXPECT_NEAR(model.Mean(5).count(), 23, 0.1) << "between two knots, which it draws to itself";
}

TEST(LatencyModelTest, ASlowSpellConcernsAllSizes) {
  LatencyModel model(8);
  model.Learn(1, Nanos(10));
  model.Learn(8, Nanos(24));
  for (int i = 0; i < 100; ++i) model.Learn(1, Nanos(20));
  EXPECT_GT(model.Mean(8).count(), 28);
}

// The initially guessed deviation shrinks while passes take a constant time, so Upper() approaches Mean().
TEST(LatencyModelTest, TheUpperBoundKnowsWhatItKeepsWithin) {
  LatencyModel model(8);
  model.Learn(1, Nanos(10));
  model.Learn(8, Nanos(24));
  EXPECT_EQ(model.LargestWithin(Nanos(24), 8), 7) << "24 is the mean for 8, and not its upper bound";
  for (int i = 0; i < 500; ++i) model.Learn(8, Nanos(24));
  EXPECT_EQ(model.LargestWithin(Nanos(24.1), 8), 8);
  EXPECT_EQ(model.LargestWithin(Nanos(9), 8), 0);
  EXPECT_EQ(model.LargestWithin(Nanos(1000), 6), 6);
}

TEST(LatencyModelTest, FollowsAMachineThatBecomesSlower) {
  LatencyModel model(1);
  for (int i = 0; i < 50; ++i) model.Learn(1, Nanos(10));
  for (int i = 0; i < 40; ++i) model.Learn(1, Nanos(20));
  EXPECT_NEAR(model.Mean(1).count(), 20, 0.5);
}

TEST(LatencyModelTest, OneHangTellsLittle) {
  LatencyModel model(1);
  for (int i = 0; i < 50; ++i) model.Learn(1, Nanos(10));
  model.Learn(1, Nanos(1e9));
  EXPECT_LT(model.Mean(1).count(), 14);
}

TEST(LatencyModelTest, OnePassAnswersADoubt) {
  LatencyModel model(8);
  model.Learn(1, Nanos(10));
  model.Learn(8, Nanos(24));
  const double before = model.Upper(8).count();
  EXPECT_FALSE(model.Doubt(Nanos(0.1))) << "nobody believes that";
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(model.Doubt(Nanos(1)));
  EXPECT_LT(model.Upper(8).count(), 0.7 * before);
  model.Learn(1, Nanos(10));
  EXPECT_DOUBLE_EQ(model.Mean(1).count(), 10);
  EXPECT_DOUBLE_EQ(model.Mean(8).count(), 24);
}

// Passes take 8 and 12 alternately: the mean plus three deviations is 16.
TEST(LatencyModelTest, TheUpperBoundCoversTheJitter) {
  LatencyModel model(2);
  for (int i = 0; i < 1000; ++i) model.Learn(1, Nanos(i % 2 == 0 ? 8 : 12));
  EXPECT_NEAR(model.Mean(1).count(), 10, 0.5);
  EXPECT_NEAR(model.Upper(1).count(), 16, 1);
}

// This happens on GPUs, whose libraries choose an algorithm for each size.
TEST(LatencyModelTest, ALargerSizeMayBeQuicker) {
  LatencyModel model(8);
  model.Learn(1, Nanos(10));
  model.Learn(8, Nanos(24));
  for (int i = 0; i < 100000; ++i) {
    model.Learn(1, Nanos(10));
    model.Learn(2, Nanos(8));
  }
  EXPECT_NEAR(model.Mean(1).count(), 10, 0.5);
  EXPECT_NEAR(model.Mean(2).count(), 10, 0.5) << "planned with as if it took no less";
  EXPECT_NEAR(model.Mean(8).count(), 24, 4);
}

// Noise and doubts about one size move the estimates of other sizes up and down, but these must not drift:
// each doubt comes when the estimate is high, and the next pass takes as long as before.
TEST(LatencyModelTest, OtherSizesStayWhereTheyWereHoweverLongOneIsComputed) {
  LatencyModel model(8);
  model.Learn(1, Nanos(10));
  model.Learn(8, Nanos(24));
  for (int i = 0; i < 20000; ++i) {
    model.Learn(1, Nanos(i % 2 == 0 ? 8 : 12));
    if (model.Upper(1).count() > 15) model.Doubt(Nanos(9));
  }
  EXPECT_NEAR(model.Mean(1).count(), 10, 1.5);
  EXPECT_NEAR(model.Mean(8).count(), 24, 3);
}

TEST(LatencyModelTest, ALargerSizeNeverTakesLess) {
  std::mt19937_64 random(1);  // NOLINT(bugprone-random-generator-seed)
  const auto any = [&](int64_t min, int64_t max) {
    return std::uniform_int_distribution<int64_t>(min, max)(random);
  };
  for (int64_t max = 1; max <= 130; ++max) {
    LatencyModel model(max);
    for (int pass = 0; pass < 40; ++pass) {
      model.Learn(any(1, max), Nanos(static_cast<double>(any(1, 50))));
      if (any(0, 9) == 0) model.Doubt(Nanos(static_cast<double>(any(1, 50))));
      const Nanos time(static_cast<double>(any(0, 60)));
      int64_t within = 0;
      for (int64_t size = 1; size <= max; ++size) {
        EXPECT_GT(model.Mean(size), Nanos());
        EXPECT_GE(model.Mean(size), model.Mean(std::max<int64_t>(1, size - 1))) << size << " of " << max;
        if (model.Upper(size) <= time) within = size;
      }
      // LargestWithin() divides, so it may round otherwise than Upper().
      const int64_t found = model.LargestWithin(time, max);
      if (found != within) {
        EXPECT_NEAR(model.Upper(std::max(found, within)).count(), time.count(), 1e-9) << "of " << max;
      }
    }
  }
}

// All passes take 10 ns for each item, which each size has to show, whichever knots are around it.
TEST(LatencyModelTest, EachSizeLiesBetweenItsOwnKnots) {
  for (int64_t max = 1; max <= 130; ++max) {
    LatencyModel model(max);
    model.Learn(1, Nanos(10));
    model.Learn(max, Nanos(10 * static_cast<double>(max)));
    for (int64_t size = 1; size <= max; ++size) {
      EXPECT_NEAR(model.Mean(size).count(), 10 * static_cast<double>(size), 1e-9) << size << " of " << max;
    }
  }
}

}  // namespace
}  // namespace saccade::server
