#include "server/admission/drain_rate.h"

#include "gtest/gtest.h"

namespace saccade::server {
namespace {

class DrainRateTest : public ::testing::Test {
 protected:
  DrainRateTest() { rate_.Advance(now_, false); }

  // Lets `ended` requests complete every `period`, for `length`, with requests always in flight.
  void Work(int ended, absl::Duration period, absl::Duration length) {
    for (const absl::Time end = now_ + length; now_ < end;) {
      now_ += period;
      rate_.Advance(now_, true);
      for (int i = 0; i < ended; ++i) rate_.Ended();
    }
  }

  double SecondsFor(int64_t requests) const { return absl::ToDoubleSeconds(rate_.TimeFor(requests)); }

  absl::Time now_ = absl::UnixEpoch();
  DrainRate rate_;
};

TEST_F(DrainRateTest, UnknownBeforeAnythingEnded) { EXPECT_EQ(rate_.TimeFor(100), DrainRate::kUnknown); }

TEST_F(DrainRateTest, ASteadyRate) {
  Work(1, absl::Milliseconds(10), absl::Seconds(2));
  EXPECT_NEAR(SecondsFor(50), 0.5, 0.02);
}

TEST_F(DrainRateTest, BatchesCountAsTheirRequests) {
  Work(8, absl::Milliseconds(80), absl::Seconds(20));
  EXPECT_NEAR(SecondsFor(50), 0.5, 0.02);
}

TEST_F(DrainRateTest, PausesAreNotSlowness) {
  Work(1, absl::Milliseconds(10), absl::Seconds(2));
  now_ += absl::Hours(1);
  rate_.Advance(now_, false);
  EXPECT_NEAR(SecondsFor(50), 0.5, 0.02);
}

TEST_F(DrainRateTest, ANewRateIsLearnt) {
  Work(1, absl::Milliseconds(10), absl::Seconds(20));
  Work(1, absl::Milliseconds(100), absl::Seconds(20));
  EXPECT_NEAR(SecondsFor(10), 1.0, 0.2);
}

TEST_F(DrainRateTest, AHangIsSlow) {
  Work(1, absl::Milliseconds(10), absl::Seconds(2));
  now_ += absl::Minutes(2);
  rate_.Advance(now_, true);
  EXPECT_EQ(rate_.TimeFor(50), DrainRate::kMax);
}

TEST_F(DrainRateTest, StaysWithinItsBounds) {
  Work(1000, absl::Milliseconds(1), absl::Seconds(1));
  EXPECT_EQ(rate_.TimeFor(1), DrainRate::kMin);
  EXPECT_EQ(rate_.TimeFor(int64_t{1} << 60), DrainRate::kMax);
}

TEST_F(DrainRateTest, AClockThatGoesBackChangesNothing) {
  Work(1, absl::Milliseconds(10), absl::Seconds(2));
  rate_.Advance(now_ - absl::Seconds(1), true);
  EXPECT_NEAR(SecondsFor(50), 0.5, 0.02);
}

}  // namespace
}  // namespace saccade::server
