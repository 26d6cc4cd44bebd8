#include "server/protocols/call_scope.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/core/fake_clock.h"
#include "server/logging/log.h"

namespace saccade::server {
namespace {

class CallScopeTest : public ::testing::Test {
 protected:
  FakeClock clock_;
  std::vector<CallFacts> logged_;
  const CallWatch watch_{
      {.clock = &clock_, .access_log = [this](const CallFacts& facts) { logged_.push_back(facts); }}};
  const CallStart start_ = {.method = "/package.Service/Method",
                            .client = "token:17",
                            .address = "ipv4:10.0.0.7",
                            .metadata = {{"x-request-id", "an id"}},
                            .arrival = clock_.Now(),
                            .deadline = clock_.Now() + absl::Seconds(3)};
};

TEST_F(CallScopeTest, AGrpcCallIsRecordedAndDescribed) {
  const CallScope scope({.watch = &watch_}, start_, "package.Service/Method");
  EXPECT_EQ(scope.client(), start_.client);
  EXPECT_EQ(scope.arrival(), start_.arrival);
  EXPECT_EQ(scope.deadline(), start_.deadline);
  scope.AddReceived(7);
  scope.AddReceived(5);
  CallHead head;
  head.model = "a model";
  scope.Describe(head);
  EXPECT_EQ(head.client, start_.client);
  EXPECT_EQ(head.arrival, start_.arrival);
  EXPECT_EQ(head.deadline, start_.deadline);
  EXPECT_EQ(head.record, scope.record());
  clock_.Advance(absl::Seconds(2));
  scope.End(absl::NotFoundError("no"), 0);
  ASSERT_EQ(logged_.size(), 1u);
  EXPECT_EQ(logged_[0].origin.method, "package.Service/Method");
  EXPECT_FALSE(logged_[0].origin.is_http());
  EXPECT_EQ(logged_[0].origin.client, start_.address);
  EXPECT_EQ(logged_[0].request_id, "an id");
  EXPECT_EQ(logged_[0].received_bytes, 12);
  EXPECT_EQ(logged_[0].model, "a model");
  EXPECT_EQ(logged_[0].end.status, absl::NotFoundError("no"));
  EXPECT_EQ(logged_[0].total, absl::Seconds(2));
}

TEST_F(CallScopeTest, ARequestOfAStreamArrivesAfterItsStream) {
  clock_.Advance(absl::Seconds(1));
  const CallScope scope({.watch = &watch_}, start_, "package.Service/Method", clock_.Now());
  EXPECT_EQ(scope.arrival(), start_.arrival + absl::Seconds(1));
  EXPECT_EQ(scope.deadline(), start_.deadline);
  scope.End(absl::OkStatus(), 9);
  EXPECT_EQ(logged_.at(0).total, absl::ZeroDuration());
  EXPECT_EQ(logged_.at(0).end.bytes, 9);
}

TEST_F(CallScopeTest, AnHttpRequestIsRecordedWithItsResponse) {
  HttpRequest request;
  request.method = "POST";
  request.headers = {{"X-Request-Id", "an id"}};
  request.body = "{}";
  request.client = "ipv6:[::/64]";
  request.address = "ipv6:[::1]";
  request.arrival = clock_.Now();
  clock_.Advance(absl::Seconds(4));
  const CallScope scope({.watch = &watch_}, request, "/v1/predict");
  EXPECT_EQ(scope.client(), request.client);
  EXPECT_EQ(scope.arrival(), request.arrival);
  CallHead head;
  scope.Describe(head);
  EXPECT_EQ(head.arrival, request.arrival);
  EXPECT_EQ(scope.deadline(), absl::InfiniteFuture());
  HttpResponse response{.status = 418, .body = "123"};
  response.attached = {BytePieces("4567"), BytePieces("89")};
  scope.End(absl::OkStatus(), response);
  ASSERT_EQ(logged_.size(), 1u);
  EXPECT_EQ(logged_[0].origin.name(), "POST /v1/predict");
  EXPECT_EQ(logged_[0].request_id, "an id");
  EXPECT_EQ(logged_[0].received_bytes, 2);
  EXPECT_EQ(logged_[0].end.bytes, 9);
  EXPECT_EQ(logged_[0].end.http_status, 418);
  EXPECT_EQ(logged_[0].total, absl::Seconds(4)) << "what the request waited for a thread";
}

TEST_F(CallScopeTest, ACallThatNobodyWatchesHasNoRecord) {
  const CallScope scope({}, start_, "package.Service/Method");
  EXPECT_EQ(scope.record(), nullptr);
  scope.AddReceived(1);
  CallHead head;
  scope.Describe(head);
  EXPECT_EQ(head.client, start_.client);
  scope.End(absl::OkStatus(), 0);
}

// Logs a call that failed because of the daemon.
TEST_F(CallScopeTest, AFaultIsLogged) {
  const CallScope scope({.watch = &watch_}, start_, "package.Service/Method");
  ::testing::internal::CaptureStderr();
  InitLogging(LogFormat::kText, LogLevel::kInfo);
  scope.End(absl::InternalError("it broke"), 0, "a model", "another id");
  EXPECT_TRUE(FlushLog(absl::Seconds(30)));
  const std::string line = ::testing::internal::GetCapturedStderr();
  for (const char* part : {"call failed", "package.Service/Method", "a model", "another id", "it broke"}) {
    EXPECT_NE(line.find(part), std::string::npos) << part << " in " << line;
  }
  EXPECT_EQ(logged_.size(), 1u);
}

}  // namespace
}  // namespace saccade::server
