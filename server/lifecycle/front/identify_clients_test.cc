#include "server/lifecycle/front/identify_clients.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;

constexpr char kToken[] = "user-0123456789abcdef";
constexpr char kNowhere[] = "/no/such/thing";

RequestHead HeadOf(const std::string& path, const std::string& token = "") {
  RequestHead head;
  head.method = "POST";
  head.path = path;
  if (!token.empty()) head.headers.emplace_back("authorization", absl::StrCat("Bearer ", token));
  return head;
}

class IdentifyClientsTest : public testing::Test {
 protected:
  IdentifyClientsTest() {
    const std::string path = testing::TempDir() + "/arrivals_test_tokens";
    std::ofstream(path) << kToken << " predict\n";
    chmod(path.c_str(), 0600);
    tokens_ = Tokens::Open(path).value();
    std::remove(path.c_str());
    check_ = IdentifyClients(tokens_.get(), [this](absl::string_view client) {
      counted_.emplace_back(client);
      return answer_;
    });
  }

  std::unique_ptr<Tokens> tokens_;
  std::vector<std::string> counted_;
  absl::Status answer_;
  ArrivalCheck check_;
};

TEST_F(IdentifyClientsTest, AClientIsItsTokenElseItsAddress) {
  const Peer peer{"2001:db8:1:2:3::4", false, false};
  const auto known = check_(HeadOf(kNowhere, kToken), peer);
  ASSERT_TRUE(known.ok());
  EXPECT_THAT(known->client, StartsWith("token:"));
  EXPECT_EQ(known->address, "ipv6:[2001:db8:1:2:3::4]");
  const auto unknown = check_(HeadOf(kNowhere, "a-guess-0123456789abcdef"), peer);
  EXPECT_EQ(unknown->client, "ipv6:[2001:db8:1:2::/64]");
  EXPECT_EQ(check_(HeadOf(kNowhere), {"10.0.0.7", false, false})->client, "ipv4:10.0.0.7");
  EXPECT_THAT(counted_, ElementsAre(known->client, unknown->client, "ipv4:10.0.0.7"));
}

TEST_F(IdentifyClientsTest, ARequestThatIsTooMuchIsAnError) {
  answer_ = absl::ResourceExhaustedError("too fast");
  EXPECT_EQ(check_(HeadOf(kNowhere), Peer{}).status(), answer_);
}

TEST_F(IdentifyClientsTest, HealthChecksAreNotCounted) {
  answer_ = absl::ResourceExhaustedError("too fast");
  for (const char* path :
       {"/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch", "/v2/health/live", "/v2/health/ready",
        "/inference.GRPCInferenceService/ServerLive", "/inference.GRPCInferenceService/ServerReady"}) {
    EXPECT_TRUE(check_(HeadOf(path), Peer{}).ok()) << path;
  }
  EXPECT_THAT(counted_, IsEmpty());
  EXPECT_FALSE(check_(HeadOf("/grpc.health.v1.Health/List"), Peer{}).ok()) << "it lists the models";
}

TEST_F(IdentifyClientsTest, WithoutTokensAndRatesTheAddressNamesTheClient) {
  EXPECT_EQ(IdentifyClients(nullptr, nullptr)(HeadOf(kNowhere, kToken), {"10.0.0.7", false, false})->client,
            "ipv4:10.0.0.7");
}

}  // namespace
}  // namespace saccade::server
