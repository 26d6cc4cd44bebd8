#include "server/simulation/workload.h"

#include <gtest/gtest.h>

#include <cmath>

#include "server/simulation/histogram.h"
#include "server/simulation/linear_latency.h"

namespace saccade::server::simulation {
namespace {

struct Gaps {
  double mean = 0;
  double cv = 0;
};

Gaps Measure(Stream& stream, int n) {
  double sum = 0;
  double squares = 0;
  Nanos last = stream.Next().at;
  for (int i = 0; i < n; ++i) {
    const Nanos at = stream.Next().at;
    const double gap = (at - last).count() * 1e-9;
    last = at;
    sum += gap;
    squares += gap * gap;
  }
  const double mean = sum / n;
  return {.mean = mean, .cv = std::sqrt(squares / n - mean * mean) / mean};
}

TEST(WorkloadTest, GapsHaveTheirMeanAndVariation) {
  for (const double cv : {0.5, 1.0, 2.0, 4.0, 8.0}) {
    Stream stream({.rate = 1000, .cv = cv}, 7);
    const Gaps gaps = Measure(stream, 1'000'000);
    EXPECT_NEAR(gaps.mean, 0.001, 0.001 * 0.01 * (1 + cv)) << cv;
    EXPECT_NEAR(gaps.cv, cv, 0.05 * cv) << cv;
  }
}

TEST(WorkloadTest, EvenGapsAreEven) {
  Stream stream({.rate = 1000, .cv = 0}, 7);
  Nanos last = stream.Next().at;
  EXPECT_LT(last, kMillisecond);
  for (int i = 0; i < 1000; ++i) {
    const Nanos at = stream.Next().at;
    EXPECT_NEAR((at - last).count(), 1e6, 2);
    last = at;
  }
}

TEST(WorkloadTest, AnotherRateScalesTheSameRequests) {
  Stream slow({.rate = 100, .cv = 2, .buckets = {1, 1, 1}}, 3);
  Stream fast({.rate = 200, .cv = 2, .buckets = {1, 1, 1}}, 3);
  for (int i = 0; i < 1000; ++i) {
    const Arrival a = slow.Next();
    const Arrival b = fast.Next();
    EXPECT_NEAR(a.at.count(), 2.0 * b.at.count(), 4);
    EXPECT_EQ(a.bucket, b.bucket);
  }
}

TEST(WorkloadTest, AStepAndADayChangeTheRate) {
  Stream step({.rate = 1000, .cv = 0, .step_factor = 5, .step_from = kSecond, .step_to = 2 * kSecond}, 1);
  int by_second[3] = {};
  for (Arrival a = step.Next(); a.at < 3 * kSecond; a = step.Next())
    ++by_second[static_cast<int>(a.at / kSecond)];
  EXPECT_NEAR(by_second[0], 1000, 2);
  EXPECT_NEAR(by_second[1], 5000, 2);
  EXPECT_NEAR(by_second[2], 1000, 2);

  Stream day({.rate = 1000, .cv = 0, .day_factor = 3, .day_length = 4 * kSecond}, 1);
  int morning = 0;
  int evening = 0;
  for (Arrival a = day.Next(); a.at < 4 * kSecond; a = day.Next()) ++(a.at < 2 * kSecond ? morning : evening);
  EXPECT_GT(morning, 4 * evening);
}

TEST(WorkloadTest, BucketsAreDrawnByWeight) {
  Stream stream({.rate = 1000, .buckets = ZipfWeights(4), .first_client = 5, .clients = 2}, 1);
  int counts[4] = {};
  for (int i = 0; i < 25'000; ++i) {
    const Arrival a = stream.Next();
    ++counts[a.bucket];
    EXPECT_TRUE(a.client == 5 || a.client == 6);
  }
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(counts[i], 12'000.0 / (i + 1), 400) << i;
}

TEST(HistogramTest, PercentilesAreCloseFromAbove) {
  Histogram histogram;
  for (int i = 1; i <= 1000; ++i) histogram.Add(i * kMillisecond);
  EXPECT_NEAR(ToMilliseconds(histogram.Percentile(0.5)), 500, 1.3);
  EXPECT_NEAR(ToMilliseconds(histogram.Percentile(0.99)), 990, 2.5);
  EXPECT_GE(histogram.Percentile(0.99), 990 * kMillisecond);
  EXPECT_NEAR(ToMilliseconds(histogram.Percentile(1)), 1000, 2.5);
}

TEST(HistogramTest, SmallDurationsAreExact) {
  Histogram histogram;
  histogram.Add(Nanos(17));
  EXPECT_EQ(histogram.Percentile(0.5), Nanos(17));
  EXPECT_EQ(Histogram().Percentile(0.5), Nanos());
}

TEST(LinearLatencyTest, BucketsOfOneAreaDifferInShape) {
  const auto shapes = EqualAreas(4);
  for (const Shape& shape : shapes) EXPECT_NEAR(shape.area(), 1, 1e-9);
  EXPECT_NEAR(Hull(shapes.front(), shapes.back()).area(), 2, 1e-9);
}

}  // namespace
}  // namespace saccade::server::simulation
