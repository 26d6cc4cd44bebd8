#include "server/protocols/rest/error.h"

#include <new>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/core/errors.h"
#include "server/core/retry_hint.h"
#include "server/core/shed_reason.h"

namespace saccade::server {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

HttpResponse Sent(const absl::Status& status) {
  RetryJitter jitter(1);
  return ToHttp(status, &jitter);
}

TEST(RestErrorTest, CodesBecomeStatuses) {
  EXPECT_EQ(Sent(absl::InvalidArgumentError("")).status, 400);
  EXPECT_EQ(Sent(absl::OutOfRangeError("")).status, 400);
  EXPECT_EQ(Sent(absl::FailedPreconditionError("")).status, 400);
  EXPECT_EQ(Sent(absl::PermissionDeniedError("")).status, 403);
  EXPECT_EQ(Sent(absl::NotFoundError("")).status, 404);
  EXPECT_EQ(Sent(absl::AlreadyExistsError("")).status, 409);
  EXPECT_EQ(Sent(absl::CancelledError("")).status, 503);
  EXPECT_EQ(Sent(absl::UnimplementedError("")).status, 501);
  EXPECT_EQ(Sent(absl::UnavailableError("")).status, 503);
  EXPECT_EQ(Sent(absl::DeadlineExceededError("")).status, 504);
  EXPECT_EQ(Sent(absl::InternalError("")).status, 500);
  EXPECT_EQ(Sent(absl::NotFoundError("no model")).body, R"({"error":"no model"})");
}

TEST(RestErrorTest, WhoIsRefusedForNowIsToldWhenToComeAgain) {
  absl::Status full = absl::ResourceExhaustedError("full");
  SetShedReason(full, ShedReason::kQueueFull);
  SetRetryAfter(full, absl::Seconds(10));
  const HttpResponse refused = Sent(full);
  EXPECT_EQ(refused.status, 429);
  ASSERT_EQ(refused.headers.size(), 1u);
  EXPECT_EQ(refused.headers[0].first, "Retry-After");
  EXPECT_GE(std::stoi(refused.headers[0].second), 5);
  EXPECT_LE(std::stoi(refused.headers[0].second), 15);
  absl::Status shed = absl::ResourceExhaustedError("full");
  SetShedReason(shed, ShedReason::kQueueFull);
  EXPECT_EQ(Sent(shed).status, 429) << "nobody knows when, but not never";
  // In whole seconds, at least one.
  SetRetryAfter(full, absl::Milliseconds(3));
  EXPECT_THAT(Sent(full).headers, ElementsAre(Pair("Retry-After", "1")));
  EXPECT_THAT(Sent(absl::UnavailableError("")).headers, ElementsAre(Pair("Retry-After", AnyOf("1", "2"))));
}

TEST(RestErrorTest, WhoMeetsAServerWithoutMemoryMayComeAgain) {
  absl::Status error;
  try {
    throw std::bad_alloc();
  } catch (...) {
    error = ErrorOfException();
  }
  EXPECT_TRUE(absl::IsResourceExhausted(error)) << error;
  EXPECT_EQ(Sent(error).status, 429);
  EXPECT_THAT(Sent(error).headers, ElementsAre(Pair("Retry-After", AnyOf("1", "2"))));
}

TEST(RestErrorTest, WhatIsTooLargeNeedNotComeAgain) {
  const HttpResponse refused = Sent(absl::ResourceExhaustedError("too many pixels"));
  EXPECT_EQ(refused.status, 413);
  EXPECT_THAT(refused.headers, IsEmpty());
}

}  // namespace
}  // namespace saccade::server
