#include "server/lifecycle/front/front.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/admission/admission.h"
#include "server/metrics/metrics.h"
#include "server/net/testing/net_client.h"
#include "server/protocols/retry_jitter.h"
#include "server/security/tokens.h"

namespace saccade::server {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kToken[] = "user-0123456789abcdef";

// A GET of `path`, after whose response the connection is closed.
std::string Get(const std::string& path, const std::string& fields = "") {
  return absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n", fields, "\r\n");
}

// A gRPC-web call with an empty message.
std::string Call(const std::string& path) {
  return absl::StrCat("POST ", path,
                      " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                      "Content-Type: application/grpc-web+proto\r\nContent-Length: 5\r\n\r\n",
                      std::string(5, '\0'));
}
constexpr char kHealth[] = "/grpc.health.v1.Health/Check";
constexpr char kWatch[] = "/grpc.health.v1.Health/Watch";

// Waits until `condition` holds. Fails the test if it does not within a minute.
template <typename Condition>
void Await(const Condition& condition) {
  const absl::Time end = absl::Now() + absl::Minutes(1);
  while (!condition()) ASSERT_LT(absl::Now(), end);
}

std::string Exchanged(int port, const std::string& request) {
  const NetClient client(port);
  EXPECT_TRUE(client.connected());
  EXPECT_TRUE(client.Send(request));
  return client.ReadToEnd();
}

class FrontTest : public testing::Test {
 protected:
  ~FrontTest() override {
    if (front_ != nullptr) front_->Stop();
  }

  // Opens all ports, with a few routes.
  absl::Status Open(const Tokens* tokens = nullptr, bool plain_metrics = false, int http_port = 0) {
    Front::Options options;
    options.health = health_;
    options.origins.allowed_hosts = allowed_hosts_;
    options.grpc.host = options.http.host = options.metrics.host = "127.0.0.1";
    options.http.port = http_port;
    options.plain_metrics = plain_metrics;
    front_ = Front::Create(options, {.tokens = tokens,
                                     .ledger = admission_.get(),
                                     .metrics = &metrics_,
                                     .retry_jitter = &jitter_,
                                     .clock = Clock::Real()})
                 .value();
    front_->health().Set("", true);
    Front::Services services;
    services.routes.push_back({"GET", "/v2", Says("the routes")});
    services.routes.push_back({"GET", "/v2/health/live", Says("alive")});
    services.routes.push_back({"POST", "/v2/models/{model}/infer", Says("an answer")});
    services.metrics_routes.push_back({"GET", "/metrics", Says("the metrics")});
    return front_->Open(std::move(services));
  }

  static HttpHandler Says(const std::string& text) {
    return Responding([text](const HttpRequest&) { return HttpResponse{.body = text}; });
  }

  HealthReserve::Options health_;
  std::vector<std::string> allowed_hosts_ = {"*"};
  Metrics metrics_{"0"};
  RetryJitter jitter_{1};
  std::unique_ptr<Admission> admission_ = Admission::Create({}, Clock::Real()).value();
  std::unique_ptr<Front> front_;
};

TEST_F(FrontTest, TheGrpcAndHttpPortsServeTheSame) {
  ASSERT_TRUE(Open().ok());
  for (const int port : {front_->grpc_port(), front_->http_port()}) {
    EXPECT_THAT(Exchanged(port, Get("/v2")), AllOf(HasSubstr("200"), HasSubstr("the routes")));
    EXPECT_THAT(Exchanged(port, Call(kHealth)), AllOf(HasSubstr("200"), HasSubstr("grpc-status: 0\r\n")));
    EXPECT_THAT(Exchanged(port, Call("/no.Service/Call")), HasSubstr("grpc-status: 12"));
    EXPECT_THAT(Exchanged(port, Get("/metrics")), HasSubstr("404"));
  }
}

TEST_F(FrontTest, TheMetricsPortServesMetricsAndHealth) {
  ASSERT_TRUE(Open().ok());
  EXPECT_THAT(Exchanged(front_->metrics_port(), Get("/metrics")), HasSubstr("the metrics"));
  EXPECT_THAT(Exchanged(front_->metrics_port(), Call(kHealth)), HasSubstr("grpc-status: 0\r\n"));
  EXPECT_THAT(Exchanged(front_->metrics_port(), Get("/v2")), HasSubstr("404"));
}

TEST_F(FrontTest, WatchesDoNotHoldPlacesOfTheMetricsPort) {
  ASSERT_TRUE(Open().ok());
  EXPECT_THAT(Exchanged(front_->metrics_port(), Call(kWatch)), HasSubstr("grpc-status: 12"));
  // More connections than the port has places. Their clients keep them open.
  std::vector<std::unique_ptr<NetClient>> watches;
  for (int i = 0; i < 300; ++i) {
    watches.push_back(std::make_unique<NetClient>(front_->metrics_port()));
    std::string call = Call(kWatch);
    const std::string closes = "Connection: close\r\n";
    call.erase(call.find(closes), closes.size());
    ASSERT_TRUE(watches.back()->Send(call));
    ASSERT_EQ(watches.back()->Read(12), "HTTP/1.1 200") << i;
  }
  EXPECT_THAT(Exchanged(front_->metrics_port(), Get("/metrics")), HasSubstr("the metrics"));
  EXPECT_THAT(Exchanged(front_->metrics_port(), Call(kHealth)), HasSubstr("grpc-status: 0\r\n"));
}

TEST_F(FrontTest, AProbeGetsAPlaceOfThoseWhoFillTheMetricsPort) {
  ASSERT_TRUE(Open().ok());
  std::vector<std::unique_ptr<NetClient>> crowd;
  const std::string call = Call(kHealth);
  for (int i = 0; i < 256; ++i) {
    crowd.push_back(std::make_unique<NetClient>(front_->metrics_port()));
    // The message does not come.
    ASSERT_TRUE(crowd.back()->Send(call.substr(0, call.size() - 5)));
  }
  NetClient probe;
  ASSERT_TRUE(probe.Bind(htonl(INADDR_LOOPBACK + 1)));
  probe.Connect(front_->metrics_port());
  ASSERT_TRUE(probe.Send(Get("/metrics")));
  EXPECT_THAT(probe.ReadToEnd(), HasSubstr("the metrics"));
}

TEST_F(FrontTest, TokensAreNeededForBothProtocols) {
  const std::string path = testing::TempDir() + "/front_test_tokens";
  std::ofstream(path) << kToken << " predict\n";
  chmod(path.c_str(), 0600);
  const auto tokens = Tokens::Open(path).value();
  std::remove(path.c_str());
  ASSERT_TRUE(Open(tokens.get()).ok());
  EXPECT_THAT(Exchanged(front_->http_port(), Get("/v2")), HasSubstr("401"));
  EXPECT_THAT(
      Exchanged(front_->http_port(), Get("/v2", absl::StrCat("Authorization: Bearer ", kToken, "\r\n"))),
      HasSubstr("the routes"));
  EXPECT_THAT(Exchanged(front_->grpc_port(), Call("/saccade.v1.Vision/Predict")),
              HasSubstr("grpc-status: 16"));
  EXPECT_THAT(Exchanged(front_->grpc_port(), Call(kHealth)), HasSubstr("grpc-status: 0\r\n"))
      << "probes send none";
  EXPECT_THAT(Exchanged(front_->metrics_port(), Get("/metrics")), HasSubstr("401"));
  EXPECT_THAT(metrics_.Exposition(), HasSubstr("saccade_front_refusals_total{reason=\"unauthenticated\"} 3"));
}

TEST_F(FrontTest, PlainMetricsNeedNoToken) {
  const std::string path = testing::TempDir() + "/front_test_plain_tokens";
  std::ofstream(path) << kToken << " predict\n";
  chmod(path.c_str(), 0600);
  const auto tokens = Tokens::Open(path).value();
  std::remove(path.c_str());
  ASSERT_TRUE(Open(tokens.get(), /*plain_metrics=*/true).ok());
  EXPECT_THAT(Exchanged(front_->metrics_port(), Get("/metrics")), HasSubstr("the metrics"));
  EXPECT_THAT(Exchanged(front_->http_port(), Get("/v2")), HasSubstr("401"));
}

TEST_F(FrontTest, APortInUseIsNamedByItsFlag) {
  ASSERT_TRUE(Open().ok());
  const auto first = std::move(front_);
  const absl::Status second = Open(nullptr, false, first->http_port());
  EXPECT_EQ(second.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(second.message()), HasSubstr("--http-port"));
}

// Another port may serve a scrape while the last one is opened.
TEST_F(FrontTest, AScrapeBeforeAllPortsAreOpenCountsNothing) {
  const absl::StatusOr<std::unique_ptr<Front>> none = Front::Create(
      {},
      {.ledger = admission_.get(), .metrics = &metrics_, .retry_jitter = &jitter_, .clock = Clock::Real()});
  ASSERT_TRUE(none.ok());
  (*none)->RefreshMetrics();
  EXPECT_THAT(metrics_.Exposition(), Not(HasSubstr("saccade_front_connections{port=\"http\"} 1")));
}

TEST_F(FrontTest, MetricsShowWhatIsOpen) {
  ASSERT_TRUE(Open().ok());
  const NetClient upload(front_->http_port());
  ASSERT_TRUE(
      upload.Send("POST /v2/models/m/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n12"));
  Await([this] { return front_->open_requests() > 0; });
  front_->RefreshMetrics();
  const std::string text = metrics_.Exposition();
  EXPECT_THAT(text, HasSubstr("saccade_front_connections{port=\"http\"} 1"));
  EXPECT_THAT(text, HasSubstr("saccade_front_connections{port=\"grpc\"} 0"));
  EXPECT_THAT(text, HasSubstr("saccade_front_requests_open 1"));
}

TEST_F(FrontTest, HealthIsAnsweredWhileTheLedgerIsFull) {
  ASSERT_TRUE(Open().ok());
  const int64_t half = AdmissionOptions().max_inflight_bytes / 2;
  const auto one = admission_->Charge("one", half), other = admission_->Charge("other", half);
  ASSERT_TRUE(one.ok() && other.ok());
  for (const int port : {front_->grpc_port(), front_->http_port()}) {
    EXPECT_THAT(Exchanged(port, Get("/v2")), HasSubstr("HTTP/1.1 429 "));
    EXPECT_THAT(Exchanged(port, Call("/grpc.health.v1.Health/List")), HasSubstr("grpc-status: 8\r\n"));
    EXPECT_THAT(Exchanged(port, Get("/v2/health/live")),
                AllOf(HasSubstr("HTTP/1.1 200 "), HasSubstr("alive")));
    EXPECT_THAT(Exchanged(port, Call(kHealth)), HasSubstr("grpc-status: 0\r\n"));
  }
  EXPECT_THAT(metrics_.Exposition(),
              AllOf(HasSubstr("saccade_front_refusals_total{reason=\"bytes\"} 4"),
                    HasSubstr("saccade_front_refusals_total{reason=\"health_checks\"} 0")));
  Await([this] { return front_->health_bytes() == 0; });
}

TEST_F(FrontTest, OpenWatchesAreBoundedAndChecksAreAnsweredBesideThem) {
  health_ = {.max_watches = 3, .max_watches_per_client = 2};
  ASSERT_TRUE(Open().ok());
  const NetClient first(front_->grpc_port());
  auto second = std::make_unique<NetClient>(front_->http_port());
  for (const NetClient* watch : {&first, static_cast<const NetClient*>(second.get())}) {
    ASSERT_TRUE(watch->Send(Call(kWatch)));
    EXPECT_EQ(watch->Read(12), "HTTP/1.1 200");
  }
  const int64_t held = front_->health_bytes();
  EXPECT_GT(held, 0);
  EXPECT_EQ(admission_->inflight().bytes, 0) << "they take nothing from requests";
  const NetClient beyond(front_->grpc_port());
  ASSERT_TRUE(beyond.Send(Call(kWatch)));
  Await([this] { return admission_->inflight().bytes > 0; });
  const int64_t half = AdmissionOptions().max_inflight_bytes / 2;
  const auto one = admission_->Charge("one", half);
  const auto other = admission_->Charge("other", half - admission_->inflight().bytes % half);
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_THAT(Exchanged(front_->grpc_port(), Call(kWatch)),
              AllOf(HasSubstr("grpc-status: 8\r\n"), HasSubstr("--max-health-watches-per-client"),
                    HasSubstr("ask with Check")));
  EXPECT_THAT(metrics_.Exposition(), HasSubstr("saccade_front_refusals_total{reason=\"health_watches\"} 1"));
  EXPECT_THAT(Exchanged(front_->grpc_port(), Call(kHealth)), HasSubstr("grpc-status: 0\r\n"));
  EXPECT_THAT(Exchanged(front_->http_port(), Get("/v2/health/live")), HasSubstr("alive"));
  second = nullptr;
  Await([&] { return front_->health_bytes() < held; });
  const NetClient third(front_->grpc_port());
  ASSERT_TRUE(third.Send(Call(kWatch)));
  EXPECT_EQ(third.Read(12), "HTTP/1.1 200");
  Await([&] { return front_->health_bytes() == held; });
}

TEST_F(FrontTest, ADrainGivesThePlacesOfWatchesBack) {
  ASSERT_TRUE(Open().ok());
  const NetClient watch(front_->grpc_port());
  ASSERT_TRUE(watch.Send(Call(kWatch)));
  EXPECT_EQ(watch.Read(12), "HTTP/1.1 200");
  const NetClient silent(front_->http_port());
  const std::string call = Call(kWatch);
  ASSERT_TRUE(silent.Send(call.substr(0, call.size() - 5)));
  Await([this] { return front_->open_requests() == 2; });
  EXPECT_GT(front_->health_bytes(), 0);
  front_->GoAway(absl::ZeroDuration());
  EXPECT_THAT(watch.ReadToEnd(), HasSubstr("grpc-status: 14\r\n"));
  front_->EndUnfinished();
  EXPECT_THAT(silent.ReadToEnd(), Not(HasSubstr("200")));
  Await([this] { return front_->health_bytes() == 0; });
}

// A page's own name that its DNS points to this machine.
TEST_F(FrontTest, ANameThatIsNotServedIsRefusedOverBothProtocols) {
  allowed_hosts_ = {};
  ASSERT_TRUE(Open().ok());
  const auto with_host = [](std::string request, const std::string& host) {
    const std::string usual = "Host: localhost\r\n";
    return request.replace(request.find(usual), usual.size(), absl::StrCat("Host: ", host, "\r\n"));
  };
  for (const int port : {front_->grpc_port(), front_->http_port()}) {
    EXPECT_THAT(Exchanged(port, with_host(Get("/v2"), "rebind.example:8000")), HasSubstr("HTTP/1.1 421 "));
    EXPECT_THAT(Exchanged(port, with_host(Call(kHealth), "rebind.example")),
                AllOf(HasSubstr("HTTP/1.1 421 "), HasSubstr("--allowed-hosts")));
    EXPECT_THAT(Exchanged(port, with_host(Get("/v2"), "127.0.0.1:8000")), HasSubstr("the routes"));
    EXPECT_THAT(Exchanged(port, with_host(Call(kHealth), "[::1]:8001")), HasSubstr("grpc-status: 0\r\n"));
  }
  EXPECT_THAT(Exchanged(front_->metrics_port(), with_host(Get("/metrics"), "rebind.example")),
              HasSubstr("the metrics"))
      << "the metrics port has names of its own";
}

TEST_F(FrontTest, ADrainAnswersWhatIsCompleteAndEndsWhatIsNot) {
  ASSERT_TRUE(Open().ok());
  const NetClient idle(front_->http_port());
  const NetClient upload(front_->http_port());
  const NetClient late(front_->http_port());
  const std::string head = "POST /v2/models/m/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\n";
  ASSERT_TRUE(upload.Send(head + "12"));
  ASSERT_TRUE(late.Send(head + "12"));
  Await([this] { return front_->open_requests() == 2; });
  front_->GoAway(absl::ZeroDuration());
  EXPECT_EQ(idle.ReadToEnd(), "") << "idle connections are closed";
  ASSERT_TRUE(late.Send("34"));
  EXPECT_THAT(late.ReadToEnd(), HasSubstr("an answer"));
  EXPECT_EQ(front_->open_requests(), 1U);
  front_->EndUnfinished();
  EXPECT_THAT(upload.ReadToEnd(), Not(HasSubstr("200")));
  EXPECT_EQ(front_->open_requests(), 0U);
  EXPECT_THAT(Exchanged(front_->metrics_port(), Get("/metrics")), HasSubstr("the metrics"))
      << "the metrics port stays";
  EXPECT_EQ(admission_->inflight().bytes, 0);
}

}  // namespace
}  // namespace saccade::server
