#include "server/inference/status_codes.h"

#include <gtest/gtest.h>

#include "server/core/retry_hint.h"

namespace saccade::server {
namespace {

using Code = absl::StatusCode;

absl::Status Full() {
  absl::Status full = absl::ResourceExhaustedError("the queue is full");
  SetRetryAfter(full, absl::Seconds(2));
  return full;
}

TEST(StatusCodesTest, NothingChangesWithoutTheFlag) {
  const StatusCodes codes;
  EXPECT_EQ(codes.OfInference(Full()), Full());
  EXPECT_EQ(codes.OfLoad(absl::NotFoundError("x")), absl::NotFoundError("x"));
  EXPECT_EQ(codes.OfMissingModel(absl::UnavailableError("x"), false), absl::UnavailableError("x"));
}

TEST(StatusCodesTest, RejectionsAndLateRequestsAreUnavailable) {
  const StatusCodes codes(true);
  const absl::Status full = codes.OfInference(Full());
  EXPECT_EQ(full.code(), Code::kUnavailable);
  EXPECT_EQ(full.message(), "the queue is full");
  EXPECT_EQ(RetryAfter(full), absl::Seconds(2)) << "payloads stay";
  EXPECT_EQ(codes.OfInference(full), full);
  EXPECT_EQ(codes.OfInference(absl::DeadlineExceededError("x")).code(), Code::kUnavailable);
  EXPECT_EQ(codes.OfInference(absl::ResourceExhaustedError("too large")).code(), Code::kResourceExhausted)
      << "no retry would help";
  EXPECT_TRUE(codes.OfInference(absl::OkStatus()).ok());
}

TEST(StatusCodesTest, OnlyARequestWithoutAVersionFindsNoModel) {
  const StatusCodes codes(true);
  EXPECT_EQ(codes.OfMissingModel(absl::UnavailableError("x"), false).code(), Code::kNotFound);
  EXPECT_EQ(codes.OfMissingModel(absl::UnavailableError("x"), true).code(), Code::kUnavailable);
}

TEST(StatusCodesTest, OrdersAndFacts) {
  const StatusCodes codes(true);
  EXPECT_EQ(codes.OfStatistics(absl::NotFoundError("x")).code(), Code::kInvalidArgument);
  EXPECT_EQ(codes.OfLoad(absl::NotFoundError("x")).code(), Code::kInternal);
  EXPECT_EQ(codes.OfLoad(absl::FailedPreconditionError("x")).code(), Code::kInvalidArgument);
  EXPECT_EQ(codes.OfUnload(absl::NotFoundError("x")).code(), Code::kInvalidArgument);
  EXPECT_EQ(codes.OfRegistrationOverHttp(absl::AlreadyExistsError("x")).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace saccade::server
