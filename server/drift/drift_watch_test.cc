#include "server/drift/drift_watch.h"

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace saccade::server {
namespace {

using ::testing::IsEmpty;

DriftSample Bright(double value) {
  DriftSample sample;
  sample.Set(Feature::kBrightness, value);
  sample.fingerprint = static_cast<uint64_t>(value * 1e6) + 1;
  return sample;
}

// Values from `from`, spread over a quarter of the scale.
void AddMany(DriftWatch& watch, double from, int count) {
  for (int i = 0; i < count; ++i) watch.Add(Bright(from + 0.25 * (i * 37 % 97) / 97));
}

TEST(DriftWatchTest, TheFirstWindowIsTheReference) {
  DriftWatch watch(100, std::nullopt);
  AddMany(watch, 0.2, 99);
  EXPECT_FALSE(watch.Report().reference_complete);
  AddMany(watch, 0.2, 1);
  EXPECT_TRUE(watch.Report().reference_complete);
  AddMany(watch, 0.7, 49);
  EXPECT_THAT(watch.Report().drift, IsEmpty()) << "less than half a window says nothing";
  AddMany(watch, 0.7, 1);
  const DriftReport report = watch.Report();
  ASSERT_EQ(report.drift.size(), 1U);
  EXPECT_EQ(report.drift[0].first, "brightness");
  EXPECT_GT(report.drift[0].second, 1);
  EXPECT_EQ(report.reference.items, 100);
  EXPECT_EQ(report.recent.items, 50);
  EXPECT_EQ(report.seen, 150);
}

TEST(DriftWatchTest, WhatWasLongAgoIsForgotten) {
  DriftWatch watch(100, std::nullopt);
  AddMany(watch, 0.2, 100);
  AddMany(watch, 0.7, 1000);
  EXPECT_GT(watch.Report().drift[0].second, 1);
  AddMany(watch, 0.2, 100);
  EXPECT_LT(watch.Report().drift[0].second, 0.25);
  EXPECT_LE(watch.Report().recent.items, 100);
}

TEST(DriftWatchTest, AFilesReferenceStays) {
  Distribution reference;
  for (int i = 0; i < 100; ++i) reference.Add(Bright(0.9));
  DriftWatch watch(100, reference);
  EXPECT_TRUE(watch.Report().reference_complete);
  AddMany(watch, 0.2, 100);
  EXPECT_GT(watch.Report().drift[0].second, 1);
}

TEST(DriftWatchTest, CountsRepeatedItems) {
  DriftWatch watch(10, std::nullopt);
  for (int i = 0; i < 30; ++i) watch.Add(Bright(i % 10 / 100.0));
  for (int i = 0; i < 5; ++i) watch.Add(DriftSample());
  EXPECT_EQ(watch.Report().repeated, 20) << "what has no fingerprint equals nothing";
}

TEST(DriftWatchTest, LooksAtAFewRequestsInASecond) {
  DriftWatch watch(10, std::nullopt);
  int looks = 0;
  for (int ms = 0; ms < 10'000; ++ms) looks += watch.Wants(absl::FromUnixMillis(1'000'000 + ms)) ? 1 : 0;
  EXPECT_EQ(looks, 10 * DriftWatch::kLooksPerSecond);
}

TEST(DriftWatchTest, ManyThreads) {
  DriftWatch watch(64, std::nullopt);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&watch, i] {
      for (int n = 0; n < 1000; ++n) {
        watch.Wants(absl::FromUnixMillis(n * 60));
        watch.Add(Bright((i * 1000 + n) / 4000.0));
        if (n % 100 == 0) watch.Report();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(watch.Report().seen, 4000);
}

}  // namespace
}  // namespace saccade::server
