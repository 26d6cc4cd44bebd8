#include "server/drift/distribution.h"

#include <cmath>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace saccade::server {
namespace {

using ::testing::Optional;

DriftSample Of(Feature feature, double value) {
  DriftSample sample;
  sample.Set(feature, value);
  return sample;
}

Distribution OfScores(double mean, int items, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> scores(mean, 0.1);
  Distribution distribution;
  for (int i = 0; i < items; ++i) distribution.Add(Of(Feature::kScore, scores(random)));
  return distribution;
}

TEST(DistributionTest, CountsValuesInTheirBins) {
  Distribution distribution;
  for (const double value : {-1.0, 0.0, 0.05, 0.07, 0.99, 1.0, 7.0, std::nan("")})
    distribution.Add(Of(Feature::kBrightness, value));
  const auto& bins = distribution.bins[static_cast<size_t>(Feature::kBrightness)];
  EXPECT_EQ(distribution.items, 8);
  EXPECT_EQ(bins[0], 4) << "what lies below, and what is no number, is in the first";
  EXPECT_EQ(bins[1], 1);
  EXPECT_EQ(bins[15], 3);
}

TEST(DistributionTest, TheIndexIsTheFormulas) {
  Distribution then;
  Distribution now;
  for (int i = 0; i < 6; ++i) then.Add(Of(Feature::kFound, 0));
  for (int i = 0; i < 2; ++i) then.Add(Of(Feature::kFound, 1));
  for (int i = 0; i < 3; ++i) now.Add(Of(Feature::kFound, 0));
  for (int i = 0; i < 5; ++i) now.Add(Of(Feature::kFound, 1));
  // With half a count more in each of the 16 bins, (6.5, 2.5) and (3.5, 5.5) of 16.
  const double expected = (3.5 - 6.5) / 16 * std::log(3.5 / 6.5) + (5.5 - 2.5) / 16 * std::log(5.5 / 2.5);
  EXPECT_THAT(DriftOf(Feature::kFound, then, now), Optional(::testing::DoubleNear(expected, 1e-12)));
}

TEST(DistributionTest, TellsAChangeFromChance) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Distribution then = OfScores(0.6, 1000, seed);
    EXPECT_LT(*DriftOf(Feature::kScore, then, OfScores(0.6, 1000, seed + 100)), 0.1);
    EXPECT_GT(*DriftOf(Feature::kScore, then, OfScores(0.5, 1000, seed + 200)), 0.25);
  }
}

TEST(DistributionTest, EqualSharesHaveNoDriftWhateverTheirNumber) {
  Distribution once;
  Distribution often;
  for (int i = 0; i < 10; ++i) {
    once.Add(Of(Feature::kScore, i / 20.0));
    for (int k = 0; k < 30; ++k) often.Add(Of(Feature::kScore, i / 20.0));
  }
  EXPECT_THAT(DriftOf(Feature::kScore, once, often), Optional(::testing::DoubleNear(0, 1e-12)));
}

TEST(DistributionTest, WhatWasNeverSeenHasNoDrift) {
  const Distribution scores = OfScores(0.5, 10, 1);
  EXPECT_EQ(DriftOf(Feature::kSharpness, scores, scores), std::nullopt);
  EXPECT_EQ(DriftOf(Feature::kScore, Distribution(), scores), std::nullopt);
  EXPECT_EQ(DriftOfClasses(scores, scores), std::nullopt);
}

TEST(DistributionTest, ComparesTheFrequentClassesAndTheRest) {
  Distribution then;
  Distribution same;
  Distribution rare_ones;
  for (int64_t label = 0; label < 100; ++label) {
    const double share = label < 10 ? 100 : 1;
    DriftSample sample;
    sample.classes = {{label, share}};
    then.Add(sample);
    same.Add(sample);
    // The same number of rare ones, of other classes.
    sample.classes = {{label < 10 ? label : label + 1000, share}};
    rare_ones.Add(sample);
  }
  EXPECT_THAT(DriftOfClasses(then, same), Optional(::testing::DoubleNear(0, 1e-12)));
  EXPECT_LT(*DriftOfClasses(then, rare_ones), 0.05);
  Distribution other;
  other.classes = {{0, 1090.0}};
  EXPECT_GT(*DriftOfClasses(then, other), 1);
}

TEST(DistributionTest, ClassesAreBounded) {
  Distribution distribution;
  for (int64_t label = 0; label < 100'000; ++label) {
    DriftSample sample;
    sample.classes = {{label, 1}};
    distribution.Add(sample);
  }
  EXPECT_EQ(distribution.classes.size(), kMaxDriftClasses + 1);
  EXPECT_EQ(distribution.classes[kOtherClasses], 100'000 - static_cast<double>(kMaxDriftClasses));
}

}  // namespace
}  // namespace saccade::server
