#include "server/protocols/vision/items.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "server/core/bad_field.h"
#include "server/core/retry_hint.h"
#include "server/core/shed_reason.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<absl::Duration> TimeoutOf(int64_t seconds, int32_t nanos) {
  v1::PredictStreamRequest message;
  message.mutable_timeout()->set_seconds(seconds);
  message.mutable_timeout()->set_nanos(nanos);
  return server::TimeoutOf(message);
}

TEST(VisionItemsTest, ATimeoutIsADurationAboveNothing) {
  EXPECT_EQ(*server::TimeoutOf(v1::PredictStreamRequest()), absl::InfiniteDuration());
  EXPECT_EQ(*TimeoutOf(1, 500'000'000), absl::Milliseconds(1500));
  EXPECT_EQ(*TimeoutOf(0, 1), absl::Nanoseconds(1));
  for (const auto& [seconds, nanos] :
       {std::pair<int64_t, int32_t>{0, 0}, {-1, 0}, {0, -5}, {0, 1'000'000'000}, {int64_t{1} << 62, 0}}) {
    const absl::Status refused = TimeoutOf(seconds, nanos).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << seconds << " " << nanos;
    EXPECT_EQ(BadFieldOf(refused), "timeout");
  }
}

TEST(VisionItemsTest, AnErrorTellsWhatACallsEndWould) {
  RetryJitter jitter(1);
  absl::Status wrong = absl::InvalidArgumentError("model: is empty");
  SetBadField(wrong, "model");
  v1::ItemError message;
  SetItemError(wrong, &jitter, &message);
  EXPECT_EQ(message.code(), 3);
  EXPECT_EQ(message.message(), "model: is empty");
  EXPECT_EQ(message.field(), "model");
  EXPECT_EQ(message.reason(), "");
  EXPECT_FALSE(message.has_retry_after());

  absl::Status full = absl::ResourceExhaustedError("full");
  SetShedReason(full, ShedReason::kQueueFull);
  SetRetryAfter(full, absl::Seconds(2));
  message.Clear();
  SetItemError(full, &jitter, &message);
  EXPECT_EQ(message.code(), 8);
  EXPECT_EQ(message.reason(), "QUEUE_FULL");
  EXPECT_GE(message.retry_after().seconds(), 1);
  EXPECT_LE(message.retry_after().seconds(), 4);
}

}  // namespace
}  // namespace saccade::server
