#include "server/core/shed_reason.h"

#include <set>

#include "gtest/gtest.h"
#include "server/core/retry_hint.h"

namespace saccade::server {
namespace {

TEST(ShedReasonTest, WhatIsSetComesBackBesideAHint) {
  for (int i = 0; i < kShedReasons; ++i) {
    absl::Status status = absl::ResourceExhaustedError("full");
    SetShedReason(status, static_cast<ShedReason>(i));
    SetRetryAfter(status, absl::Seconds(1));
    EXPECT_EQ(ShedReasonOf(status), static_cast<ShedReason>(i));
    EXPECT_EQ(StatedShedReason(status), static_cast<ShedReason>(i));
    EXPECT_EQ(RetryAfter(status), absl::Seconds(1));
  }
}

TEST(ShedReasonTest, WithoutOneTheCodeSays) {
  EXPECT_EQ(ShedReasonOf(absl::ResourceExhaustedError("")), ShedReason::kQueueFull);
  EXPECT_EQ(ShedReasonOf(absl::CancelledError("")), ShedReason::kCancelled);
  EXPECT_EQ(ShedReasonOf(absl::DeadlineExceededError("")), ShedReason::kDeadline);
  EXPECT_EQ(ShedReasonOf(absl::UnavailableError("")), ShedReason::kDraining);
  EXPECT_EQ(ShedReasonOf(absl::InvalidArgumentError("")), std::nullopt) << "wrong, not shed";
  EXPECT_EQ(ShedReasonOf(absl::OkStatus()), std::nullopt);
  EXPECT_EQ(StatedShedReason(absl::ResourceExhaustedError("")), std::nullopt);
}

TEST(ShedReasonTest, EachHasANameOfItsOwn) {
  std::set<absl::string_view> names;
  for (int i = 0; i < kShedReasons; ++i) names.insert(ShedReasonName(static_cast<ShedReason>(i)));
  EXPECT_EQ(names.size(), static_cast<size_t>(kShedReasons));
  EXPECT_EQ(names.count(""), 0u);
  EXPECT_EQ(ShedReasonName(ShedReason::kPredictedLate), "predicted_late");
  EXPECT_EQ(ShedReasonName(ShedReason::kClientRequests), "client_requests");
  EXPECT_EQ(ShedReasonName(ShedReason::kClientBytes), "client_bytes");
  EXPECT_EQ(ShedReasonName(ShedReason::kClientDecodedBytes), "client_decoded_bytes");
}

}  // namespace
}  // namespace saccade::server
