#include "client/load/latency.h"

#include <gtest/gtest.h>

namespace saccade::client {
namespace {

TEST(Summarise, TakesTheNearestRank) {
  std::vector<absl::Duration> samples;
  for (int i = 200; i >= 1; --i) samples.push_back(absl::Microseconds(i));
  const Latency latency = Summarise(samples);
  EXPECT_EQ(latency.p50, absl::Microseconds(100));
  EXPECT_EQ(latency.p90, absl::Microseconds(180));
  EXPECT_EQ(latency.p99, absl::Microseconds(198));
  EXPECT_EQ(latency.mean, absl::Microseconds(100.5));
}

TEST(Summarise, OfOneSampleIsThatSample) {
  EXPECT_EQ(Summarise({absl::Seconds(2)}).p50, absl::Seconds(2));
  EXPECT_EQ(Summarise({absl::Seconds(2)}).p99, absl::Seconds(2));
}

TEST(Summarise, IsZeroWithoutSamples) { EXPECT_EQ(Summarise({}).p99, absl::ZeroDuration()); }

}  // namespace
}  // namespace saccade::client
