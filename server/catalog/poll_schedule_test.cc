#include "server/catalog/poll_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace saccade::server {
namespace {

constexpr absl::Duration kInterval = absl::Seconds(15);
const absl::Time kNow = absl::UnixEpoch();

std::vector<absl::Duration> Waits(absl::Duration jitter, uint64_t seed, int count) {
  PollSchedule schedule(kInterval, jitter, seed);
  std::vector<absl::Duration> waits;
  for (int i = 0; i < count; ++i) waits.push_back(schedule.After(kNow) - kNow);
  return waits;
}

TEST(PollScheduleTest, IsRegularWithoutJitter) {
  EXPECT_THAT(Waits(absl::ZeroDuration(), 1, 3), testing::Each(kInterval));
}

TEST(PollScheduleTest, SpreadsTheScansOfManyReplicasOverTheJitter) {
  constexpr int kReplicas = 1000;
  std::vector<absl::Duration> first;
  for (uint64_t seed = 1; seed <= kReplicas; ++seed) first.push_back(Waits(kInterval, seed, 1).front());
  EXPECT_THAT(first, testing::Each(testing::AllOf(testing::Ge(kInterval), testing::Lt(2 * kInterval))));
  // In each fifteenth of the time there is about a fifteenth of the replicas.
  for (int second = 15; second < 30; ++second) {
    const auto in_second = std::count_if(first.begin(), first.end(), [&](absl::Duration wait) {
      return wait >= absl::Seconds(second) && wait < absl::Seconds(second + 1);
    });
    EXPECT_THAT(in_second, testing::AllOf(testing::Gt(30), testing::Lt(110))) << second;
  }
}

TEST(PollScheduleTest, DrawsAnewForEachScan) {
  std::vector<absl::Duration> waits = Waits(absl::Seconds(5), 7, 100);
  std::sort(waits.begin(), waits.end());
  EXPECT_EQ(std::unique(waits.begin(), waits.end()), waits.end());
  EXPECT_LT(waits.front(), kInterval + absl::Seconds(1));
  EXPECT_GT(waits.back(), kInterval + absl::Seconds(4));
}

}  // namespace
}  // namespace saccade::server
