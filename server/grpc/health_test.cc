#include "server/grpc/health.h"

#include <gmock/gmock.h>

#include <map>

#include "grpc/health/v1/health.pb.h"
#include "server/grpc/small_messages.h"
#include "server/grpc/testing/handler_fixture.h"

namespace saccade::server {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using grpc::health::v1::HealthListResponse;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

class HealthTest : public GrpcHandlerTest {
 protected:
  HealthTest() { Handler(health_.Methods()); }

  std::unique_ptr<FakeExchange> Ask(const std::string& method, const std::string& service) {
    auto exchange = BeginAt(FakeExchange::Head("/grpc.health.v1.Health/" + method));
    HealthCheckRequest request;
    request.set_service(service);
    exchange->SendBodyPart(Framed(request.SerializeAsString()));
    exchange->EndBody();
    return exchange;
  }

  // The messages of an answer.
  static std::vector<std::string> MessagesOf(const FakeExchange& exchange) {
    std::vector<std::string> messages;
    for (absl::string_view rest = exchange.answer().body; !rest.empty();) {
      std::array<char, kMessagePrefixBytes> prefix;
      std::copy_n(rest.data(), prefix.size(), prefix.begin());
      messages.emplace_back(rest.substr(prefix.size(), LengthIn(prefix)));
      rest.remove_prefix(prefix.size() + LengthIn(prefix));
    }
    return messages;
  }
  static std::vector<HealthCheckResponse::ServingStatus> StatusesOf(const FakeExchange& exchange) {
    std::vector<HealthCheckResponse::ServingStatus> statuses;
    for (const std::string& message : MessagesOf(exchange)) {
      HealthCheckResponse response;
      EXPECT_TRUE(response.ParseFromString(message));
      statuses.push_back(response.status());
    }
    return statuses;
  }

  void Set(const std::string& service, bool serving) {
    health_.Set(service, serving);
    loop_.RunUntilIdle();
  }

  Health health_;
};

TEST_F(HealthTest, ChecksAService) {
  Set("", true);
  Set("model", false);
  EXPECT_THAT(StatusesOf(*Ask("Check", "")), ElementsAre(HealthCheckResponse::SERVING));
  EXPECT_THAT(StatusesOf(*Ask("Check", "model")), ElementsAre(HealthCheckResponse::NOT_SERVING));
  auto unknown = Ask("Check", "other");
  EXPECT_EQ(unknown->answer().Field("grpc-status"), "5");
  EXPECT_THAT(unknown->answer().Field("grpc-message"), HasSubstr("'other'"));
  health_.Remove("model");
  EXPECT_EQ(Ask("Check", "model")->answer().Field("grpc-status"), "5");
}

TEST_F(HealthTest, ListsAllServices) {
  Set("", true);
  Set("model", false);
  HealthListResponse response;
  ASSERT_TRUE(response.ParseFromString(MessagesOf(*Ask("List", "")).at(0)));
  std::map<std::string, int> statuses;
  for (const auto& [service, status] : response.statuses()) statuses[service] = status.status();
  EXPECT_THAT(statuses, ElementsAre(Pair("", HealthCheckResponse::SERVING),
                                    Pair("model", HealthCheckResponse::NOT_SERVING)));
}

TEST_F(HealthTest, TellsWatchesEachChange) {
  auto watch = Ask("Watch", "model");
  EXPECT_THAT(StatusesOf(*watch), ElementsAre(HealthCheckResponse::SERVICE_UNKNOWN));
  Set("model", false);
  Set("model", false);
  Set("other", true);
  Set("model", true);
  health_.Remove("model");
  loop_.RunUntilIdle();
  EXPECT_THAT(StatusesOf(*watch),
              ElementsAre(HealthCheckResponse::SERVICE_UNKNOWN, HealthCheckResponse::NOT_SERVING,
                          HealthCheckResponse::SERVING, HealthCheckResponse::SERVICE_UNKNOWN));
  EXPECT_FALSE(watch->over());
}

TEST_F(HealthTest, TellsASlowReaderOnlyTheNewestState) {
  Set("model", true);
  auto watch = BeginAt(FakeExchange::Head("/grpc.health.v1.Health/Watch"));
  watch->Stall();
  HealthCheckRequest request;
  request.set_service("model");
  watch->SendBodyPart(Framed(request.SerializeAsString()));
  const size_t unsent = watch->unsent();
  Set("model", false);
  Set("model", true);
  Set("model", false);
  EXPECT_EQ(watch->unsent(), unsent);
  watch->Resume();
  EXPECT_THAT(StatusesOf(*watch),
              ElementsAre(HealthCheckResponse::SERVING, HealthCheckResponse::NOT_SERVING));
}

TEST_F(HealthTest, ForgetsAWatchWhoseClientIsGone) {
  auto watch = Ask("Watch", "model");
  watch->Break();
  EXPECT_TRUE(watch->over());
  Set("model", true);
  EXPECT_THAT(StatusesOf(*watch), ElementsAre(HealthCheckResponse::SERVICE_UNKNOWN));
}

TEST_F(HealthTest, EndsAllWatches) {
  Set("model", true);
  std::vector<std::unique_ptr<FakeExchange>> watches;
  for (const char* service : {"model", "model", "other"}) watches.push_back(Ask("Watch", service));
  health_.EndWatches();
  loop_.RunUntilIdle();
  watches.push_back(Ask("Watch", "model"));
  for (const auto& watch : watches) EXPECT_EQ(watch->answer().Field("grpc-status"), "14");
  EXPECT_THAT(StatusesOf(*Ask("Check", "model")), ElementsAre(HealthCheckResponse::SERVING));
}

TEST_F(HealthTest, RefusesOtherRequests) {
  for (const char* method : {"Check", "Watch"}) {
    auto malformed = BeginAt(FakeExchange::Head(std::string("/grpc.health.v1.Health/") + method));
    malformed->SendBodyPart(Framed("\xFF\xFF"));
    malformed->EndBody();
    EXPECT_EQ(malformed->answer().Field("grpc-status"), "3");
    EXPECT_EQ(Ask(method, std::string(2000, 'x'))->answer().Field("grpc-status"), "3");
    EXPECT_EQ(Ask(method, std::string(5000, 'x'))->answer().Field("grpc-status"), "8");
    auto empty = BeginAt(FakeExchange::Head(std::string("/grpc.health.v1.Health/") + method));
    empty->EndBody();
    EXPECT_EQ(empty->answer().Field("grpc-status"), "3");
  }
}

}  // namespace
}  // namespace saccade::server
