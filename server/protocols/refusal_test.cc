// Tests of rejected calls: their status on the wire, and the client they are attributed to.
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
#include "server/protocols/peer.h"
#include "server/protocols/retry_jitter.h"
#include "server/protocols/vision_errors.h"

namespace saccade::server {
namespace {

google::rpc::Status DetailsOf(const grpc::Status& status) {
  google::rpc::Status details;
  EXPECT_TRUE(details.ParseFromString(status.error_details()));
  EXPECT_EQ(details.code(), status.error_code());
  EXPECT_EQ(details.message(), status.error_message());
  return details;
}

TEST(GrpcStatusTest, AnOrdinaryErrorIsCodeAndMessage) {
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
  const grpc::Status status = ToGrpcStatus(absl::NotFoundError("no model 'x'"));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(status.error_message(), "no model 'x'");
  EXPECT_EQ(status.error_details(), "");
}

TEST(GrpcStatusTest, ARefusalTellsItsReasonToPrograms) {
  absl::Status refused = absl::ResourceExhaustedError("full");
  SetShedReason(refused, ShedReason::kModelBound);
  const google::rpc::Status details = DetailsOf(ToGrpcStatus(refused));
  ASSERT_EQ(details.details_size(), 1);
  google::rpc::ErrorInfo info;
  ASSERT_TRUE(details.details(0).UnpackTo(&info));
  EXPECT_EQ(info.reason(), "MODEL_BOUND");
  EXPECT_EQ(info.domain(), "saccade");
}

TEST(GrpcStatusTest, AWrongFieldIsNamed) {
  for (const absl::Status& error : {InvalidField("priority", "is 101"), Invalid("priority", "is 101")}) {
    const google::rpc::Status details = DetailsOf(ToGrpcStatus(error));
    ASSERT_EQ(details.details_size(), 1);
    google::rpc::BadRequest request;
    ASSERT_TRUE(details.details(0).UnpackTo(&request));
    ASSERT_EQ(request.field_violations_size(), 1);
    EXPECT_EQ(request.field_violations(0).field(), "priority");
    EXPECT_EQ(request.field_violations(0).description(), "priority: is 101");
  }
}

TEST(GrpcStatusTest, ALongMessageLeavesNoRoomForDetails) {
  const grpc::Status status = ToGrpcStatus(InvalidField("outputs", std::string(3000, 'x')));
  EXPECT_EQ(status.error_message().size(), 3009u);
  EXPECT_EQ(status.error_details(), "");
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

TEST(PeerTest, AClientIsItsAddress) {
  EXPECT_EQ(ClientOfPeer("ipv4:10.0.0.7:51234"), "ipv4:10.0.0.7");
  EXPECT_EQ(ClientOfPeer("ipv6:%5B2001:db8::1%5D:51234"), "ipv6:[2001:db8::1]");
  EXPECT_EQ(ClientOfPeer("ipv6:[::1]:51234"), "ipv6:[::1]");
  EXPECT_EQ(ClientOfPeer("unix:/run/saccade.sock"), "unix:/run/saccade.sock");
  EXPECT_EQ(ClientOfPeer("unix:"), "unix:");
  EXPECT_EQ(ClientOfPeer(""), "");
}

// A client has the same rate over HTTP as over gRPC.
TEST(PeerTest, AClientIsTheSameOverBothProtocols) {
  EXPECT_EQ(ClientOfAddress("127.0.0.1"), ClientOfPeer("ipv4:127.0.0.1:1"));
  EXPECT_EQ(ClientOfAddress("::1"), ClientOfPeer("ipv6:%5B::1%5D:2"));
  EXPECT_EQ(ClientOfAddress(""), "");
}

}  // namespace
}  // namespace saccade::server
