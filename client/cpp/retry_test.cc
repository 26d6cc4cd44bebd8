#include "client/cpp/retry.h"

#include <gtest/gtest.h>

#include "client/cpp/status.h"

namespace saccade::client {
namespace {

TEST(RetryDelay, IsForTemporaryErrorsOnly) {
  EXPECT_TRUE(RetryDelay(absl::UnavailableError("draining"), 0));
  EXPECT_TRUE(RetryDelay(absl::CancelledError("the port is closing"), 0));
  EXPECT_FALSE(RetryDelay(absl::InvalidArgumentError("no picture"), 0));
  EXPECT_FALSE(RetryDelay(absl::DeadlineExceededError("too late"), 0));
  EXPECT_FALSE(RetryDelay(absl::ResourceExhaustedError("the message is too large"), 0));
  absl::Status busy = absl::ResourceExhaustedError("the queue is full");
  SetRetryAfter(busy, "250");
  EXPECT_TRUE(RetryDelay(busy, 0));
}

TEST(RetryDelay, IsNoLessThanTheDaemonAsksFor) {
  absl::Status busy = absl::ResourceExhaustedError("the queue is full");
  SetRetryAfter(busy, "250");
  EXPECT_GE(*RetryDelay(busy, 0), absl::Milliseconds(300));
  EXPECT_LE(*RetryDelay(busy, 0), absl::Milliseconds(350));
}

TEST(RetryDelay, RejectsLongDelays) {
  absl::Status busy = absl::ResourceExhaustedError("one request an hour");
  SetRetryAfter(busy, "3600000");
  EXPECT_FALSE(RetryDelay(busy, 0));
}

TEST(RetryDelay, GrowsToItsBound) {
  const absl::Status gone = absl::UnavailableError("draining");
  for (int repeated = 0; repeated < 5; ++repeated) {
    EXPECT_GE(*RetryDelay(gone, repeated), absl::Milliseconds(50) * (1 << repeated));
    EXPECT_LE(*RetryDelay(gone, repeated), absl::Milliseconds(100) * (1 << repeated));
  }
  EXPECT_LE(*RetryDelay(gone, 1000), absl::Seconds(5));
}

}  // namespace
}  // namespace saccade::client
