#include "server/tracing/access_log.h"

#include <gtest/gtest.h>

#include "server/core/fake_clock.h"

namespace saccade::server {
namespace {

TEST(AccessLog, HasNoBoundUnlessItIsGivenOne) {
  FakeClock clock;
  AccessLog log(0, &clock);
  int64_t left_out = -1;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(log.Take(&left_out));
  EXPECT_EQ(left_out, 0);
}

TEST(AccessLog, TellsHowManyItLeftOut) {
  FakeClock clock;
  AccessLog log(2, &clock);
  int64_t left_out = -1;
  EXPECT_TRUE(log.Take(&left_out));
  EXPECT_TRUE(log.Take(&left_out));
  EXPECT_FALSE(log.Take(&left_out));
  clock.Advance(absl::Milliseconds(999));
  EXPECT_FALSE(log.Take(&left_out));
  clock.Advance(absl::Milliseconds(1));
  EXPECT_TRUE(log.Take(&left_out));
  EXPECT_EQ(left_out, 2);
  EXPECT_TRUE(log.Take(&left_out));
  EXPECT_EQ(left_out, 0);
}

}  // namespace
}  // namespace saccade::server
