#include "server/admission/client_quotas.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/core/retry_hint.h"
#include "server/core/shed_reason.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);
constexpr char kClient[] = "token:0123456789abcdef";

TEST(ClientQuotasTest, ARateOfItsOwn) {
  ClientQuotas quotas;
  quotas.Set({{kClient, {.requests_per_second = 2}}, {"token:2", {.max_requests = 1}}});
  EXPECT_TRUE(quotas.HasRate(kClient));
  EXPECT_FALSE(quotas.HasRate("token:2"));
  EXPECT_FALSE(quotas.HasRate("ipv4:10.0.0.1"));
  EXPECT_TRUE(quotas.TakeFromRate(kClient, kStart).ok());
  EXPECT_TRUE(quotas.TakeFromRate(kClient, kStart).ok());
  const absl::Status refused = quotas.TakeFromRate(kClient, kStart + absl::Milliseconds(100));
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("client 'token:0123456789abcdef' sends more than 2 requests per second (rate= of its "
                        "line in --token-file; at most 2 at once); try again in 400ms"));
  EXPECT_EQ(ShedReasonOf(refused), ShedReason::kClientRate);
  EXPECT_EQ(RetryAfter(refused), absl::Milliseconds(400));
}

TEST(ClientQuotasTest, WhatIsUsedOfARateStaysUsedWhenTheFileIsRead) {
  ClientQuotas quotas;
  quotas.Set({{kClient, {.requests_per_second = 1}}});
  EXPECT_TRUE(quotas.TakeFromRate(kClient, kStart).ok());
  quotas.Set({{kClient, {.requests_per_second = 1, .max_requests = 5}}, {"token:2", {.max_requests = 1}}});
  EXPECT_FALSE(quotas.TakeFromRate(kClient, kStart).ok());
  quotas.Set({{kClient, {.requests_per_second = 3}}});
  EXPECT_TRUE(quotas.TakeFromRate(kClient, kStart).ok()) << "another rate begins anew";
  quotas.Set({});
  EXPECT_FALSE(quotas.HasRate(kClient));
}

TEST(ClientQuotasTest, RequestsInFlight) {
  ClientQuotas quotas;
  quotas.Set({{kClient, {.max_requests = 2}}});
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(quotas.Check(kClient, 1, absl::Seconds(3)).ok());
    quotas.Add(kClient, 1);
  }
  const absl::Status refused = quotas.Check(kClient, 1, absl::Seconds(3));
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(
      std::string(refused.message()),
      HasSubstr("has 2 requests in flight; its limit is 2 (inflight= of its line in --token-file); try "
                "again in 3s"));
  EXPECT_EQ(ShedReasonOf(refused), ShedReason::kClientRequests);
  EXPECT_EQ(RetryAfter(refused), absl::Seconds(3));
  EXPECT_TRUE(quotas.Check(kClient, 0, absl::Seconds(3)).ok()) << "a part of a request that is in flight";
  EXPECT_TRUE(quotas.Check("token:2", 1, absl::Seconds(3)).ok());
  quotas.Return(kClient, 1);
  EXPECT_TRUE(quotas.Check(kClient, 1, absl::Seconds(3)).ok());
}

TEST(ClientQuotasTest, RequestsCountThatBeganBeforeTheQuota) {
  ClientQuotas quotas;
  quotas.Add(kClient, 1);
  quotas.Add("ipv4:10.0.0.1", 1);
  EXPECT_EQ(quotas.held("ipv4:10.0.0.1"), 0) << "only clients with a token are counted";
  quotas.Set({{kClient, {.max_requests = 1}}});
  EXPECT_FALSE(quotas.Check(kClient, 1, absl::Seconds(1)).ok());
  quotas.Set({});
  EXPECT_TRUE(quotas.Check(kClient, 1, absl::Seconds(1)).ok());
  quotas.Return(kClient, 1);
  quotas.Return("ipv4:10.0.0.1", 1);
  EXPECT_EQ(quotas.held(kClient), 0);
}

}  // namespace
}  // namespace saccade::server
