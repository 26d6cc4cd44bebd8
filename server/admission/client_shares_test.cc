#include "server/admission/client_shares.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/core/retry_hint.h"
#include "server/core/shed_reason.h"

namespace saccade::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr absl::Duration kLater = absl::Seconds(3);
constexpr absl::Time kNow = absl::UnixEpoch();

// Bounds of 8 requests, of 1000 bytes, of messages of 10, and of 100 decoded bytes.
class ClientSharesTest : public ::testing::Test {
 protected:
  absl::Status CheckBytes(absl::string_view client, int64_t more, int64_t own = 0) {
    return shares_.Check(client, {.bytes = more}, {.bytes = own}, kNow, kLater);
  }
  absl::Status CheckDecodedBytes(absl::string_view client, int64_t more, absl::Time now) {
    shares_.NoteArrival(client, now);
    return shares_.Check(client, {.decoded_bytes = more}, {}, now, kLater);
  }

  ClientShares shares_{{.requests = 8, .bytes = 1000, .message_bytes = 10, .decoded_bytes = 100}};
};

TEST_F(ClientSharesTest, AClientMayHoldHalfOfTheBytes) {
  EXPECT_EQ(shares_.max_bytes(), 500);
  EXPECT_TRUE(CheckBytes("a", 500).ok());
  shares_.Add("a", {.bytes = 400});
  EXPECT_TRUE(CheckBytes("a", 100).ok()) << "the share itself may be reached";
  const absl::Status refused = CheckBytes("a", 101);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("limit of 500 bytes in flight (half of --max-inflight-bytes)"),
                    HasSubstr("400 are in use, the request needs 101")));
  EXPECT_EQ(ShedReasonOf(refused), ShedReason::kClientBytes);
  EXPECT_EQ(RetryAfter(refused), kLater);
  EXPECT_TRUE(CheckBytes("b", 500).ok()) << "others have shares of their own";
}

TEST_F(ClientSharesTest, WhatExceedsTheShareByItselfIsNotWorthTryingAgain) {
  shares_.Add("a", {.bytes = 400});
  EXPECT_EQ(CheckBytes("b", 501).code(), absl::StatusCode::kInvalidArgument);
  const absl::Status refused = CheckBytes("a", 101, 400);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << "all of it belongs to the same request";
  EXPECT_THAT(std::string(refused.message()), HasSubstr("half of --max-inflight-bytes"));
}

TEST_F(ClientSharesTest, OneMessageAlwaysFits) {
  ClientShares large_messages({.bytes = 1000, .message_bytes = 700});
  EXPECT_EQ(large_messages.max_bytes(), 700);
  EXPECT_THAT(std::string(large_messages.Check("a", {.bytes = 701}, {}, kNow, kLater).message()),
              HasSubstr("--max-message-bytes"));
  EXPECT_EQ(ClientShares({.bytes = 1000, .message_bytes = 5000}).max_bytes(), 1000)
      << "the server's bound holds in any case";
  EXPECT_EQ(ClientShares({.bytes = 1, .message_bytes = 5000}).max_bytes(), 1);
}

TEST_F(ClientSharesTest, AClientThatIsAloneMayHoldAllDecodedBytes) {
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(CheckDecodedBytes("a", 10, kNow).ok());
    shares_.Add("a", {.decoded_bytes = 10});
  }
}

TEST_F(ClientSharesTest, AClientMayHoldHalfOfTheDecodedBytesBesideOthers) {
  EXPECT_TRUE(CheckDecodedBytes("a", 100, kNow).ok());
  EXPECT_TRUE(CheckDecodedBytes("b", 1, kNow).ok());
  EXPECT_TRUE(CheckDecodedBytes("a", 50, kNow).ok());
  shares_.Add("a", {.decoded_bytes = 40});
  EXPECT_TRUE(CheckDecodedBytes("a", 10, kNow).ok());
  const absl::Status refused = CheckDecodedBytes("a", 11, kNow);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("limit of 50 decoded bytes in flight (half of --max-decoded-bytes"),
                    HasSubstr("40 are in use, the request needs 11")));
  EXPECT_EQ(ShedReasonOf(refused), ShedReason::kClientDecodedBytes);
  EXPECT_EQ(RetryAfter(refused), kLater);
  EXPECT_TRUE(CheckDecodedBytes("b", 50, kNow).ok()) << "others have shares of their own";
  EXPECT_EQ(CheckDecodedBytes("b", 51, kNow).code(), absl::StatusCode::kResourceExhausted)
      << "not INVALID_ARGUMENT, because a client that is alone again may try it";
}

TEST_F(ClientSharesTest, AClientMayHaveHalfOfTheRequestsBesideOthers) {
  const auto check = [this](absl::string_view client) {
    shares_.NoteArrival(client, kNow);
    return shares_.Check(client, {.requests = 1}, {}, kNow, kLater);
  };
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(check("a").ok());
    shares_.Add("a", {.requests = 1});
  }
  EXPECT_TRUE(check("b").ok());
  const absl::Status refused = check("a");
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("limit of 4 requests in flight (half of --max-inflight-requests"),
                    HasSubstr("5 are in use")));
  EXPECT_EQ(ShedReasonOf(refused), ShedReason::kClientRequests);
  shares_.Return("a", {.requests = 2});
  EXPECT_TRUE(check("a").ok());
  ClientShares one({.requests = 1, .bytes = 1000, .message_bytes = 10});
  one.NoteArrival("b", kNow);
  EXPECT_TRUE(one.Check("a", {.requests = 1}, {}, kNow, kLater).ok());
}

// However often the client itself asks, and whoever else asked before.
TEST_F(ClientSharesTest, CompanyLastsAsLongAsOthersAsk) {
  EXPECT_TRUE(CheckDecodedBytes("b", 1, kNow).ok());
  EXPECT_TRUE(CheckDecodedBytes("c", 1, kNow + absl::Seconds(10)).ok());
  for (int second = 10; second <= 70; ++second)
    EXPECT_FALSE(CheckDecodedBytes("a", 51, kNow + absl::Seconds(second)).ok()) << second;
  EXPECT_TRUE(CheckDecodedBytes("a", 51, kNow + absl::Seconds(71)).ok());
  EXPECT_FALSE(CheckDecodedBytes("b", 51, kNow + absl::Seconds(72)).ok()) << "now the other one is company";
  EXPECT_FALSE(CheckDecodedBytes("a", 51, kNow + absl::Seconds(73)).ok()) << "a refused one is company, too";
}

TEST_F(ClientSharesTest, BytesWithoutAClientHaveNoShare) {
  shares_.Add("", {.bytes = 5000, .decoded_bytes = 5000});
  EXPECT_TRUE(CheckBytes("", 5000).ok());
  EXPECT_TRUE(CheckDecodedBytes("a", 100, kNow).ok());
  EXPECT_TRUE(CheckDecodedBytes("", 5000, kNow).ok());
  EXPECT_TRUE(CheckDecodedBytes("a", 100, kNow).ok()) << "it is no company";
  shares_.Return("", {.bytes = 5000, .decoded_bytes = 5000});
  EXPECT_EQ(shares_.clients(), 0U);
}

TEST_F(ClientSharesTest, AClientWithoutBytesIsForgotten) {
  shares_.Add("a", {});
  EXPECT_EQ(shares_.clients(), 0U);
  shares_.Add("a", {.requests = 1, .bytes = 3});
  shares_.Add("a", {.bytes = 4, .decoded_bytes = 2});
  EXPECT_EQ(shares_.held("a").bytes, 7);
  shares_.Return("a", {.requests = 1, .bytes = 7});
  EXPECT_EQ(shares_.held("a").decoded_bytes, 2);
  shares_.Return("a", {.decoded_bytes = 2});
  EXPECT_EQ(shares_.clients(), 0U);
  shares_.Return("a", {});
  EXPECT_EQ(shares_.held("a").bytes, 0);
}

}  // namespace
}  // namespace saccade::server
