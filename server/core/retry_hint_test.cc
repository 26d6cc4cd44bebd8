#include "server/core/retry_hint.h"

#include <gtest/gtest.h>

namespace saccade::server {
namespace {

TEST(RetryHintTest, TravelsWithTheStatus) {
  absl::Status status = absl::ResourceExhaustedError("full");
  EXPECT_EQ(RetryAfter(status), std::nullopt);
  SetRetryAfter(status, absl::Milliseconds(12));
  const absl::Status copy = status;
  EXPECT_EQ(RetryAfter(copy), absl::Milliseconds(12));
  EXPECT_EQ(copy.message(), "full");
}

TEST(RetryHintTest, OkCarriesNone) {
  absl::Status status;
  SetRetryAfter(status, absl::Seconds(1));
  EXPECT_EQ(RetryAfter(status), std::nullopt);
}

}  // namespace
}  // namespace saccade::server
