#include "server/admission/client_bytes.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/core/retry_hint.h"
#include "server/core/shed_reason.h"

namespace saccade::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr absl::Duration kLater = absl::Seconds(3);

TEST(ClientBytesTest, AClientMayHoldHalfOfTheBound) {
  ClientBytes bytes(1000, 10);
  EXPECT_EQ(bytes.max(), 500);
  EXPECT_TRUE(bytes.Check("a", 500, 0, kLater).ok());
  bytes.Add("a", 400);
  EXPECT_TRUE(bytes.Check("a", 100, 0, kLater).ok()) << "the share itself may be reached";
  const absl::Status refused = bytes.Check("a", 101, 0, kLater);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("limit of 500 bytes in flight (half of --max-inflight-bytes)"),
                    HasSubstr("400 are in use, the request needs 101")));
  EXPECT_EQ(ShedReasonOf(refused), ShedReason::kBytes);
  EXPECT_EQ(RetryAfter(refused), kLater);
  EXPECT_TRUE(bytes.Check("b", 500, 0, kLater).ok()) << "others have shares of their own";
}

TEST(ClientBytesTest, WhatExceedsTheShareByItselfIsNotWorthTryingAgain) {
  ClientBytes bytes(1000, 10);
  bytes.Add("a", 400);
  EXPECT_EQ(bytes.Check("b", 501, 0, kLater).code(), absl::StatusCode::kInvalidArgument);
  const absl::Status refused = bytes.Check("a", 101, 400, kLater);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << "all of it belongs to the same request";
  EXPECT_THAT(std::string(refused.message()), HasSubstr("half of --max-inflight-bytes"));
}

TEST(ClientBytesTest, OneMessageAlwaysFits) {
  const ClientBytes large_messages(1000, 700);
  EXPECT_EQ(large_messages.max(), 700);
  EXPECT_THAT(std::string(large_messages.Check("a", 701, 0, kLater).message()),
              HasSubstr("--max-message-bytes"));
  EXPECT_EQ(ClientBytes(1000, 5000).max(), 1000) << "the server's bound holds in any case";
  EXPECT_EQ(ClientBytes(1, 5000).max(), 1);
}

TEST(ClientBytesTest, BytesWithoutAClientHaveNoShare) {
  ClientBytes bytes(1000, 10);
  bytes.Add("", 5000);
  EXPECT_TRUE(bytes.Check("", 5000, 0, kLater).ok());
  bytes.Return("", 5000);
  EXPECT_EQ(bytes.clients(), 0U);
}

TEST(ClientBytesTest, AClientWithoutBytesIsForgotten) {
  ClientBytes bytes(1000, 10);
  bytes.Add("a", 0);
  EXPECT_EQ(bytes.clients(), 0U);
  bytes.Add("a", 3);
  bytes.Add("a", 4);
  EXPECT_EQ(bytes.held("a"), 7);
  bytes.Return("a", 7);
  EXPECT_EQ(bytes.clients(), 0U);
  bytes.Return("a", 0);
  EXPECT_EQ(bytes.held("a"), 0);
}

}  // namespace
}  // namespace saccade::server
