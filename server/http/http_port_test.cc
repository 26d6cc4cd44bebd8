// Requests over real sockets.
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/http/http_service.h"
#include "server/http/http_session.h"
#include "server/http/testing/test_client.h"
#include "server/http/testing/test_service.h"
#include "server/net/event_loop.h"
#include "server/net/port.h"
#include "server/net/work_pool.h"

namespace saccade::server {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Two loops, as the daemon has several.
class Server {
 public:
  explicit Server(std::vector<HttpRoute> routes, const std::string& host = "127.0.0.1") {
    HttpService::Options service;
    service.pool = &pool_;
    service_ = *HttpService::Create(std::move(service), std::move(routes));
    PortOptions options;
    options.port_flag = "--http-port";
    options.host = host;
    for (auto& loop : loops_) options.loops.push_back((loop = *EventLoop::Create("test")).get());
    options.make_session = [this](Transport* transport) {
      return MakeHttpSession(transport, service_.get(), &limits_, nullptr);
    };
    auto port = Port::Open(std::move(options));
    if (port.ok()) port_ = *std::move(port);
  }
  // Before the loops end, nothing may be watched any more.
  ~Server() { port_.reset(); }

  bool listens() const { return port_ != nullptr; }
  int port() const { return port_->port(); }
  Port& listening() { return *port_; }

  std::string Ask(const std::string& request) const {
    TestClient client(port());
    EXPECT_TRUE(client.Send(request));
    return client.ReadAnswer();
  }

 private:
  HttpLimits limits_;
  WorkPool pool_{2, 16};
  std::unique_ptr<HttpService> service_;
  std::unique_ptr<EventLoop> loops_[2];
  std::unique_ptr<Port> port_;
};

std::vector<HttpRoute> TestRoutes() {
  return {{"GET", "/live", Text([](const HttpRequest&) { return "live"; })},
          {"GET", "/metrics", Text([](const HttpRequest&) { return "metrics"; }), true},
          {"GET", "/large", Text([](const HttpRequest&) { return std::string(8 << 20, 'x'); })},
          {"POST", "/echo", Text([](const HttpRequest& r) { return absl::StrCat(r.client, " ", r.body); })}};
}

TEST(HttpPortTest, AnswersOnAFreePort) {
  const Server server(TestRoutes());
  EXPECT_GT(server.port(), 0);
  EXPECT_THAT(server.Ask(Get("/live")), EndsWith("\r\n\r\nlive"));
  EXPECT_THAT(server.Ask(Get("/metrics")), EndsWith("\r\n\r\nmetrics"));
  const std::string large = server.Ask(Get("/large"));
  EXPECT_EQ(large.size() - large.find("\r\n\r\n") - 4, size_t{8} << 20);
}

TEST(HttpPortTest, LargeBodiesArrive) {
  const Server server(TestRoutes());
  std::string body(5'000'000, 'x');
  body.back() = 'y';
  TestClient client(server.port());
  // Client and server would wait for each other if the server did not read ahead.
  std::thread sending([&] { EXPECT_TRUE(client.Send(Post("/echo", body))); });
  const std::string answer = client.ReadAnswer();
  sending.join();
  EXPECT_THAT(answer.substr(0, 20), StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(answer.substr(answer.find("\r\n\r\n") + 4), "ipv4:127.0.0.1 " + body);
}

TEST(HttpPortTest, ClientsOfBothKindsAreNamedByTheirAddress) {
  const Server server(TestRoutes(), "::");
  if (!server.listens()) GTEST_SKIP() << "this machine has no IPv6";
  EXPECT_THAT(server.Ask(Post("/echo", "ok")), EndsWith("\r\n\r\nipv4:127.0.0.1 ok"));
}

TEST(HttpPortTest, AClientThatGoesAwayHurtsNobody) {
  const Server server(TestRoutes());
  for (int i = 0; i < 20; ++i) {
    TestClient client(server.port());
    client.Send(i % 2 == 0 ? Get("/large") : "GET /li");
  }
  EXPECT_THAT(server.Ask(Get("/live")), EndsWith("live"));
}

TEST(HttpPortTest, AClientThatGoesAwayIsNoticedWhileItsAnswerIsAwaited) {
  absl::Notification entered;
  std::shared_ptr<Cancellation> cancellation;
  HttpReply held;
  Server server({{"GET", "/wait", [&](const std::shared_ptr<const HttpRequest>& request, HttpReply reply) {
                    cancellation = request->cancellation;
                    held = std::move(reply);
                    entered.Notify();
                  }}});
  {
    TestClient leaving(server.port());
    ASSERT_TRUE(leaving.Send(Get("/wait")));
    entered.WaitForNotification();
    EXPECT_FALSE(cancellation->cancelled());
  }
  // The connection ends, which it does not while a request is in progress.
  while (server.listening().connections() > 0) std::this_thread::yield();
  EXPECT_TRUE(cancellation->cancelled());
  held({});
}

TEST(HttpPortTest, ADrainLetsHandlersAnswerAndEndsConnections) {
  absl::Notification entered;
  HttpReply held;
  Server server({{"GET", "/wait", [&](const std::shared_ptr<const HttpRequest>&, HttpReply reply) {
                    held = std::move(reply);
                    entered.Notify();
                  }}});
  TestClient busy(server.port()), idle(server.port());
  ASSERT_TRUE(busy.Send(Get("/wait")));
  entered.WaitForNotification();
  EXPECT_EQ(server.listening().open_requests(), 1u);
  server.listening().Drain(absl::ZeroDuration());
  EXPECT_EQ(idle.ReadToEnd(), "");
  held({200, "text/plain", "done"});
  const std::string answer = busy.ReadToEnd();
  EXPECT_THAT(answer, HasSubstr("\r\nConnection: close\r\n"));
  EXPECT_THAT(answer, EndsWith("done"));
  const int port = server.port();
  server.listening().Close();
  EXPECT_FALSE(TestClient(port).connected());
}

TEST(HttpPortTest, AReplyMayOutliveEverything) {
  absl::Notification entered;
  HttpReply held;
  {
    Server server({{"GET", "/wait", [&](const std::shared_ptr<const HttpRequest>&, HttpReply reply) {
                      held = std::move(reply);
                      entered.Notify();
                    }}});
    TestClient client(server.port());
    ASSERT_TRUE(client.Send(Get("/wait")));
    entered.WaitForNotification();
  }
  held({200, "text/plain", "too late"});
}

TEST(HttpPortTest, ManyClientsAtOnce) {
  const Server server(TestRoutes());
  std::vector<std::thread> clients;
  for (int c = 0; c < 8; ++c) {
    clients.emplace_back([&] {
      TestClient client(server.port());
      for (int i = 0; i < 50; ++i) {
        const std::string body = absl::StrCat("request ", i);
        ASSERT_TRUE(client.Send(i % 2 == 0 ? Post("/echo", body) : Get("/metrics")));
        ASSERT_THAT(client.ReadAnswer(), EndsWith(i % 2 == 0 ? body : "metrics"));
      }
    });
  }
  for (std::thread& client : clients) client.join();
}

}  // namespace
}  // namespace saccade::server
