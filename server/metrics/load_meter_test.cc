#include "server/metrics/load_meter.h"

#include <gtest/gtest.h>

namespace saccade::server {
namespace {

class LoadMeterTest : public ::testing::Test {
 protected:
  // Lets time pass in steps of a quarter of a second, with so much happening in each second.
  void Pass(double seconds, int64_t requests, int64_t overload, double cores, double gpus = 0) {
    for (double passed = 0; passed < seconds; passed += 0.25) {
      requests_ += static_cast<double>(requests) / 4;
      overload_ += static_cast<double>(overload) / 4;
      counters_.requests = static_cast<int64_t>(requests_);
      counters_.overload = static_cast<int64_t>(overload_);
      counters_.demand_of_cores += static_cast<int64_t>(cores * 0.25e9);
      counters_.demand_of_gpus += static_cast<int64_t>(gpus * 0.25e9);
      now_ += absl::Milliseconds(250);
      meter_.Sample(now_, counters_);
    }
  }

  const LoadReport& report() const { return meter_.report(); }

  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  LoadCounters counters_;
  double requests_ = 0;
  double overload_ = 0;
  LoadMeter meter_;
};

TEST_F(LoadMeterTest, AveragesOverSomeSeconds) {
  meter_.Sample(now_, counters_);
  EXPECT_EQ(report().utilization, 0);
  Pass(30, 100, 25, 0.5);
  EXPECT_NEAR(report().requests_per_second, 100, 1);
  EXPECT_NEAR(report().overload_ratio, 0.25, 0.01);
  EXPECT_NEAR(report().utilization, 0.5, 0.01);
  // Overload shows within seconds.
  Pass(5, 100, 25, 3);
  EXPECT_GT(report().utilization, 1.5);
  Pass(30, 100, 25, 3);
  EXPECT_NEAR(report().utilization, 3, 0.05);
  // And so does its end.
  Pass(60, 0, 0, 0);
  EXPECT_LT(report().utilization, 0.01);
  EXPECT_EQ(report().overload_ratio, 0);
}

TEST_F(LoadMeterTest, TheBusierKindOfDeviceCounts) {
  meter_.Sample(now_, counters_);
  Pass(30, 10, 0, 0.2, 0.9);
  EXPECT_NEAR(report().utilization, 0.9, 0.01);
}

TEST_F(LoadMeterTest, WhatWasCountedBeforeTheFirstSampleIsNoRate) {
  counters_.requests = 1'000'000;
  meter_.Sample(now_, counters_);
  EXPECT_EQ(report().requests_per_second, 0);
}

TEST_F(LoadMeterTest, ATimeThatDoesNotAdvanceChangesOnlyWhatWaits) {
  meter_.Sample(now_, counters_);
  Pass(10, 100, 0, 0.5);
  const LoadReport before = report();
  counters_.requests += 1000;
  counters_.waiting = 7;
  meter_.Sample(now_, counters_);
  EXPECT_EQ(report().requests_per_second, before.requests_per_second);
  EXPECT_EQ(report().waiting, 7);
}

TEST_F(LoadMeterTest, MoreRejectionsThanRequestsAreAllOfThem) {
  meter_.Sample(now_, counters_);
  Pass(10, 10, 30, 0);
  EXPECT_EQ(report().overload_ratio, 1);
}

}  // namespace
}  // namespace saccade::server
