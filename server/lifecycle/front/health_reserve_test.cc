#include "server/lifecycle/front/health_reserve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/grpc/testing/fake_ledger.h"

namespace saccade::server {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kCheck[] = "/grpc.health.v1.Health/Check";
constexpr char kWatch[] = "/grpc.health.v1.Health/Watch";
constexpr char kOther[] = "/saccade.v1.Vision/Predict";
constexpr int64_t kBytes = 10'000;

// A ledger with room for two calls, and three watches, two of one client.
class HealthReserveTest : public testing::Test {
 protected:
  ~HealthReserveTest() override {
    open_.clear();
    EXPECT_EQ(ledger_.charged(), 0);
    EXPECT_EQ(reserve_.bytes(), 0);
  }

  RequestCharge Charge(const std::string& client, const std::string& path, bool has_body = true) {
    RequestHead head;
    head.method = "POST";
    head.path = path;
    head.has_body = has_body;
    return reserve_.Charge(client, head, kBytes);
  }
  // Whether the call was accepted, which then stays open.
  bool Open(const std::string& client, const std::string& path, bool has_body = true) {
    RequestCharge charge = Charge(client, path, has_body);
    if (!charge.memory.ok()) return false;
    open_.push_back(*std::move(charge.memory));
    return true;
  }
  void FillLedger() {
    EXPECT_TRUE(Open("x", kOther));
    EXPECT_TRUE(Open("y", kOther));
  }

  FakeLedger ledger_{2 * kBytes};
  HealthReserve reserve_{&ledger_, {.max_watches = 3, .max_watches_per_client = 2}};
  std::vector<ByteCharge> open_;
};

TEST_F(HealthReserveTest, RequestsAndChecksAreChargedToTheLedger) {
  EXPECT_TRUE(Open("a", kOther));
  EXPECT_TRUE(Open("a", kCheck));
  EXPECT_EQ(ledger_.charged(), 2 * kBytes);
  EXPECT_EQ(reserve_.bytes(), 0);
}

TEST_F(HealthReserveTest, OnlyAPlaceOfTheReserveHasToBeLeftSoon) {
  EXPECT_EQ(Charge("a", kCheck).max_client_wait, absl::InfiniteDuration());
  EXPECT_EQ(Charge("a", kWatch).max_client_wait, absl::InfiniteDuration());
  FillLedger();
  EXPECT_EQ(Charge("a", kCheck).max_client_wait, HealthReserve::kMaxCheckWait);
  EXPECT_EQ(Charge("a", "/v2/health/live", /*has_body=*/false).max_client_wait, HealthReserve::kMaxCheckWait);
  EXPECT_EQ(Charge("a", kWatch).max_client_wait, absl::InfiniteDuration());
}

TEST_F(HealthReserveTest, AFullLedgerRefusesRequestsAndNoChecks) {
  FillLedger();
  const RequestCharge refused = Charge("a", kOther);
  EXPECT_EQ(refused.memory.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(refused.reason, Refusal::kBytes);
  for (const char* path : {kCheck, "/inference.GRPCInferenceService/ServerLive",
                           "/inference.GRPCInferenceService/ServerReady"}) {
    EXPECT_TRUE(Open("a", path)) << path;
  }
  for (const char* path : {"/v2/health/live", "/v2/health/ready"}) {
    EXPECT_TRUE(Open("a", path, /*has_body=*/false)) << path;
    EXPECT_FALSE(Open("a", path)) << path << ": no probe has a body, which could take long to come";
  }
  EXPECT_FALSE(Open("a", "/grpc.health.v1.Health/List")) << "it names the models";
  EXPECT_EQ(reserve_.bytes(), 5 * kBytes);
}

TEST_F(HealthReserveTest, OneClientLeavesPlacesForChecksOfOthers) {
  FillLedger();
  for (int i = 0; i < HealthReserve::kMaxHealthChecksPerClient; ++i) EXPECT_TRUE(Open("a", kCheck));
  const RequestCharge refused = Charge("a", kCheck);
  EXPECT_EQ(refused.reason, Refusal::kHealthChecks);
  EXPECT_THAT(std::string(refused.memory.status().message()),
              AllOf(HasSubstr("64 open health checks"), HasSubstr("send each check completely at once")));
  EXPECT_TRUE(Open("a", "/v2/health/ready", /*has_body=*/false))
      << "those over REST have places of their own";
  EXPECT_TRUE(Open("b", kCheck));
}

TEST_F(HealthReserveTest, ChecksAreBoundedInAll) {
  FillLedger();
  for (int64_t i = 0; i < HealthReserve::kMaxHealthChecks; ++i) {
    EXPECT_TRUE(Open(absl::StrCat("client ", i / HealthReserve::kMaxHealthChecksPerClient), kCheck));
  }
  EXPECT_EQ(Charge("another", kCheck).reason, Refusal::kHealthChecks);
  EXPECT_TRUE(Open("another", kWatch)) << "watches have places of their own";
}

TEST_F(HealthReserveTest, WatchesBeyondTheirPlacesAreChargedToTheLedger) {
  EXPECT_TRUE(Open("a", kWatch));
  EXPECT_TRUE(Open("a", kWatch));
  EXPECT_EQ(ledger_.charged(), 0);
  EXPECT_TRUE(Open("a", kWatch)) << "the client's places are taken";
  EXPECT_EQ(ledger_.charged(), kBytes);
  EXPECT_TRUE(Open("b", kWatch));
  EXPECT_EQ(ledger_.charged(), kBytes);
  EXPECT_TRUE(Open("c", kWatch)) << "all places are taken";
  EXPECT_EQ(ledger_.charged(), 2 * kBytes);
  const RequestCharge of_client = Charge("a", kWatch);
  EXPECT_EQ(of_client.reason, Refusal::kHealthWatches);
  EXPECT_THAT(std::string(of_client.memory.status().message()),
              AllOf(HasSubstr("--max-health-watches-per-client"), HasSubstr("ask with Check")));
  EXPECT_THAT(std::string(Charge("c", kWatch).memory.status().message()),
              AllOf(HasSubstr("(--max-health-watches)"), HasSubstr("--max-inflight-bytes has no room")));
  EXPECT_TRUE(Open("a", kCheck));
}

}  // namespace
}  // namespace saccade::server
