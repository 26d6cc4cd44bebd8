#include "server/metrics/failure_reason.h"

#include "gtest/gtest.h"

namespace saccade::server {
namespace {

TEST(FailureReasonTest, EveryCodeHasOne) {
  struct Case {
    absl::StatusCode code;
    FailureReason rejected_early;
    FailureReason computed;
  };
  using enum FailureReason;
  const Case cases[] = {
      {absl::StatusCode::kResourceExhausted, kRejected, kOther},
      {absl::StatusCode::kUnavailable, kRejected, kOther},
      {absl::StatusCode::kDeadlineExceeded, kRejected, kOther},
      {absl::StatusCode::kCancelled, kCanceled, kCanceled},
      {absl::StatusCode::kInternal, kOther, kBackend},
      {absl::StatusCode::kInvalidArgument, kOther, kOther},
      {absl::StatusCode::kUnauthenticated, kOther, kOther},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(FailureReasonOf(c.code, false), c.rejected_early) << absl::StatusCodeToString(c.code);
    EXPECT_EQ(FailureReasonOf(c.code, true), c.computed) << absl::StatusCodeToString(c.code);
  }
}

TEST(FailureReasonTest, NamesAreTritons) {
  EXPECT_EQ(kFailureReasonNames[static_cast<size_t>(FailureReason::kRejected)], "REJECTED");
  EXPECT_EQ(kFailureReasonNames[static_cast<size_t>(FailureReason::kCanceled)], "CANCELED");
  EXPECT_EQ(kFailureReasonNames[static_cast<size_t>(FailureReason::kBackend)], "BACKEND");
  EXPECT_EQ(kFailureReasonNames[static_cast<size_t>(FailureReason::kOther)], "OTHER");
}

}  // namespace
}  // namespace saccade::server
