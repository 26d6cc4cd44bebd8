// Tests of rejected calls: how they end on the wire.
#include <cstdint>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"
#include "server/core/errors.h"
#include "server/core/retry_hint.h"
#include "server/core/shed_reason.h"
#include "server/protocols/grpc_status.h"
#include "server/protocols/retry_jitter.h"
#include "server/protocols/vision/errors.h"

namespace saccade::server {
namespace {

google::rpc::Status DetailsOf(const CallEnd& end) {
  google::rpc::Status details;
  EXPECT_TRUE(details.ParseFromString(end.details));
  EXPECT_EQ(details.code(), static_cast<int>(end.status.code()));
  EXPECT_EQ(details.message(), end.status.message());
  return details;
}

TEST(CallEndTest, AnOrdinaryErrorIsCodeAndMessage) {
  EXPECT_TRUE(ToCallEnd(absl::OkStatus()).status.ok());
  const CallEnd end = ToCallEnd(absl::NotFoundError("no model 'x'"));
  EXPECT_EQ(end.status, absl::NotFoundError("no model 'x'"));
  EXPECT_EQ(end.details, "");
  EXPECT_TRUE(end.trailers.empty());
}

TEST(CallEndTest, ARefusalTellsItsReasonToPrograms) {
  absl::Status refused = absl::ResourceExhaustedError("full");
  SetShedReason(refused, ShedReason::kModelBound);
  const google::rpc::Status details = DetailsOf(ToCallEnd(refused));
  ASSERT_EQ(details.details_size(), 1);
  google::rpc::ErrorInfo info;
  ASSERT_TRUE(details.details(0).UnpackTo(&info));
  EXPECT_EQ(info.reason(), "MODEL_BOUND");
  EXPECT_EQ(info.domain(), "saccade");
}

TEST(CallEndTest, AWrongFieldIsNamed) {
  for (const absl::Status& error : {InvalidField("priority", "is 101"), Invalid("priority", "is 101")}) {
    const google::rpc::Status details = DetailsOf(ToCallEnd(error));
    ASSERT_EQ(details.details_size(), 1);
    google::rpc::BadRequest request;
    ASSERT_TRUE(details.details(0).UnpackTo(&request));
    ASSERT_EQ(request.field_violations_size(), 1);
    EXPECT_EQ(request.field_violations(0).field(), "priority");
    EXPECT_EQ(request.field_violations(0).description(), "priority: is 101");
  }
}

TEST(CallEndTest, ALongMessageLeavesNoRoomForDetails) {
  const CallEnd end = ToCallEnd(InvalidField("outputs", std::string(3000, 'x')));
  EXPECT_EQ(end.status.message().size(), 3009u);
  EXPECT_EQ(end.details, "");
}

TEST(CallEndTest, ARetryHintIsSentTwice) {
  absl::Status refused = absl::ResourceExhaustedError("full");
  SetRetryAfter(refused, absl::Seconds(10));
  EXPECT_TRUE(ToCallEnd(refused).trailers.empty()) << "without jitter, clients would all return at once";
  RetryJitter jitter(1);
  const CallEnd end = ToCallEnd(refused, &jitter);
  ASSERT_EQ(end.trailers.size(), 1u);
  EXPECT_EQ(end.trailers[0].first, "grpc-retry-pushback-ms");
  const google::rpc::Status details = DetailsOf(end);
  ASSERT_EQ(details.details_size(), 1);
  google::rpc::RetryInfo info;
  ASSERT_TRUE(details.details(0).UnpackTo(&info));
  const int64_t ms = info.retry_delay().seconds() * 1000 + info.retry_delay().nanos() / 1'000'000;
  EXPECT_EQ(end.trailers[0].second, absl::StrCat(ms));
  EXPECT_GE(ms, 5000);
  EXPECT_LE(ms, 15000);
}

TEST(RetryJitterTest, SpreadsOverHalfToOneAndAHalf) {
  RetryJitter jitter(1);
  absl::Duration min = absl::InfiniteDuration(), max = absl::ZeroDuration(), sum = absl::ZeroDuration();
  constexpr int kDraws = 100'000;
  for (int i = 0; i < kDraws; ++i) {
    const absl::Duration spread = jitter.Spread(absl::Seconds(10));
    min = std::min(min, spread);
    max = std::max(max, spread);
    sum += spread;
  }
  EXPECT_GE(min, absl::Seconds(5));
  EXPECT_LE(min, absl::Seconds(5.05));
  EXPECT_LE(max, absl::Seconds(15));
  EXPECT_GE(max, absl::Seconds(14.95));
  EXPECT_NEAR(absl::ToDoubleSeconds(sum / kDraws), 10, 0.1);
}

TEST(RetryJitterTest, ASeedGivesItsSequence) {
  RetryJitter one(7), same(7), other(8);
  std::set<absl::Duration> drawn;
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const absl::Duration spread = one.Spread(absl::Seconds(100));
    EXPECT_EQ(spread, same.Spread(absl::Seconds(100)));
    differs = differs || spread != other.Spread(absl::Seconds(100));
    drawn.insert(spread);
  }
  EXPECT_TRUE(differs);
  EXPECT_GT(drawn.size(), 95u);
}

TEST(RetryJitterTest, NobodyIsToldToComeAtOnce) {
  RetryJitter jitter(1);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(jitter.Spread(absl::Microseconds(1)), absl::Milliseconds(1));
}

}  // namespace
}  // namespace saccade::server
