#include "server/http/http_server.h"

#include <atomic>
#include <stdexcept>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/http/test_client.h"

namespace saccade::server {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

HttpServerOptions TestOptions() {
  HttpServerOptions options;
  options.host = "127.0.0.1";
  options.max_body_bytes = 1000;
  options.max_head_bytes = 4096;
  return options;
}

std::vector<HttpRoute> TestRoutes() {
  return {
      {"GET", "/v2/health/live", [](const HttpRequest&) { return HttpResponse{200, "text/plain", "live"}; }},
      {"GET", "/empty", [](const HttpRequest&) { return HttpResponse{503, "text/plain", ""}; }},
      {"GET", "/large",
       [](const HttpRequest&) { return HttpResponse{200, "text/plain", std::string(8 << 20, 'x')}; }},
      {"GET", "/throw", [](const HttpRequest&) -> HttpResponse { throw std::runtime_error("secret"); }},
      {"POST", "/echo",
       [](const HttpRequest& r) { return HttpResponse{200, "text/plain", std::string(r.body)}; }}};
}

std::unique_ptr<HttpServer> Serve(const HttpServerOptions& options,
                                  std::vector<HttpRoute> routes = TestRoutes()) {
  auto server = HttpServer::Start(options, std::move(routes));
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

std::string Get(const std::string& path) {
  return absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: test\r\n\r\n");
}

std::string Post(const std::string& path, const std::string& body, const std::string& headers = "") {
  return absl::StrCat("POST ", path, " HTTP/1.1\r\nHost: test\r\n", headers, "Content-Length: ", body.size(),
                      "\r\n\r\n", body);
}

TEST(HttpServerTest, AnswersOnAFreePort) {
  const auto server = Serve(TestOptions());
  EXPECT_GT(server->port(), 0);
  const std::string answer = Ask(*server, Get("/v2/health/live?verbose=1"));
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Type: text/plain\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nlive"));
}

TEST(HttpServerTest, OneConnectionCarriesManyRequests) {
  const auto server = Serve(TestOptions());
  TestClient client(server->port());
  // Two at once, then one more.
  ASSERT_TRUE(client.Send(Get("/v2/health/live") + Post("/echo", "hello")));
  EXPECT_THAT(client.ReadAnswer(), EndsWith("live"));
  EXPECT_THAT(client.ReadAnswer(), EndsWith("hello"));
  ASSERT_TRUE(client.Send(Get("/v2/health/live")));
  EXPECT_THAT(client.ReadAnswer(), EndsWith("live"));
}

TEST(HttpServerTest, TheLastRequestOfAConnectionIsAnnounced) {
  HttpServerOptions options = TestOptions();
  options.max_requests_per_connection = 2;
  const auto server = Serve(options);
  TestClient client(server->port());
  ASSERT_TRUE(client.Send(Get("/v2/health/live")));
  EXPECT_THAT(client.ReadAnswer(), Not(HasSubstr("Connection: close")));
  ASSERT_TRUE(client.Send(Get("/v2/health/live")));
  EXPECT_THAT(client.ReadToEnd(), HasSubstr("Connection: close"));
}

TEST(HttpServerTest, ErrorsAreJson) {
  const auto server = Serve(TestOptions());
  const std::string unknown = Ask(*server, Get("/nowhere"));
  EXPECT_THAT(unknown, StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(unknown, HasSubstr("Content-Type: application/json\r\n"));
  EXPECT_THAT(unknown, HasSubstr(R"({"error":"no such path: /nowhere; there are /echo, /empty, )"));
  EXPECT_THAT(Ask(*server, "DELETE /echo HTTP/1.1\r\nHost: test\r\n\r\n"), StartsWith("HTTP/1.1 405 "));
  const std::string nonsense = Ask(*server, "\x16\x03\x01 not http\r\n\r\n");
  EXPECT_THAT(nonsense, StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(nonsense, EndsWith(R"({"error":"not a well-formed HTTP/1.1 request: bad method"})"));
  const std::string nowhere = Ask(*server, Get("?query"));
  EXPECT_THAT(nowhere, StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(nowhere, HasSubstr("it names no path"));
  const std::string thrown = Ask(*server, Get("/throw"));
  EXPECT_THAT(thrown, StartsWith("HTTP/1.1 500 "));
  EXPECT_THAT(thrown, Not(HasSubstr("secret")));
}

TEST(HttpServerTest, AnEmptyAnswerStaysEmpty) {
  const auto server = Serve(TestOptions());
  const std::string answer = Ask(*server, Get("/empty"));
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
}

TEST(HttpServerTest, HeadHasNoBody) {
  const auto server = Serve(TestOptions());
  TestClient client(server->port());
  ASSERT_TRUE(client.Send("HEAD /v2/health/live HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"));
  const std::string answer = client.ReadToEnd();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(answer, HasSubstr("Content-Length: 4\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
}

TEST(HttpServerTest, ALargeAnswerArrivesWhole) {
  const auto server = Serve(TestOptions());
  const std::string answer = Ask(*server, Get("/large"));
  EXPECT_EQ(answer.size() - answer.find("\r\n\r\n") - 4, size_t{8} << 20);
}

TEST(HttpServerTest, RangesAreIgnored) {
  const auto server = Serve(TestOptions());
  const std::string answer =
      Ask(*server, "GET /v2/health/live HTTP/1.1\r\nHost: test\r\nRange: bytes=0-0,1-1,0-0\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nlive"));
}

TEST(HttpServerTest, AFormArrivesAsItWasSent) {
  const auto server = Serve(TestOptions());
  for (const char* type : {"multipart/form-data; boundary=b", "application/x-www-form-urlencoded"}) {
    EXPECT_THAT(Ask(*server, Post("/echo", "--b a=1&b=2", absl::StrCat("Content-Type: ", type, "\r\n"))),
                EndsWith("\r\n\r\n--b a=1&b=2"));
  }
}

TEST(HttpServerTest, ABodyOverTheCapIs413AndIsNotTakenForARequest) {
  const auto server = Serve(TestOptions());
  EXPECT_THAT(Ask(*server, Post("/echo", std::string(1000, 'x'))), StartsWith("HTTP/1.1 200 "));
  TestClient client(server->port());
  std::string hidden = Get("/v2/health/live");
  ASSERT_TRUE(client.Send(Post("/echo", hidden + std::string(1001 - hidden.size(), 'x'))));
  const std::string answer = client.ReadToEnd();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(answer, HasSubstr("the body has 1001 bytes, more than the 1000 taken"));
  EXPECT_THAT(answer, Not(HasSubstr("HTTP/1.1 200 ")));
}

TEST(HttpServerTest, ABodyThatIsExpectedToBeRefusedIsNotAskedFor) {
  const auto server = Serve(TestOptions());
  const std::string expect = "Expect: 100-continue\r\n";
  TestClient refused(server->port());
  ASSERT_TRUE(refused.Send(absl::StrCat("POST /echo HTTP/1.1\r\n", expect, "Content-Length: 1001\r\n\r\n")));
  const std::string answer = refused.ReadToEnd();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(answer, HasSubstr("more than the 1000 taken"));
  TestClient taken(server->port());
  ASSERT_TRUE(taken.Send(absl::StrCat("POST /echo HTTP/1.1\r\n", expect, "Content-Length: 2\r\n\r\n")));
  EXPECT_THAT(taken.ReadAnswer(), StartsWith("HTTP/1.1 100 "));
  ASSERT_TRUE(taken.Send("ok"));
  EXPECT_THAT(taken.ReadAnswer(), EndsWith("ok"));
}

TEST(HttpServerTest, HeadersWithoutEndAreCut) {
  const auto server = Serve(TestOptions());
  TestClient client(server->port());
  ASSERT_TRUE(client.Send("GET /v2/health/live HTTP/1.1\r\n"));
  for (int i = 0; i < 500 && client.Send(absl::StrCat("X-", i, ": 0123456789\r\n")); ++i) {
  }
  EXPECT_THAT(client.ReadToEnd(), StartsWith("HTTP/1.1 431 Request Header Fields Too Large\r\n"));
}

TEST(HttpServerTest, ASlowRequestIsCut) {
  HttpServerOptions options = TestOptions();
  options.read_timeout = absl::Milliseconds(20);
  const auto server = Serve(options);
  TestClient head(server->port());
  ASSERT_TRUE(head.Send("GET /v2/health/live HTTP/1.1\r\nX-Slow: "));
  EXPECT_THAT(head.ReadToEnd(), StartsWith("HTTP/1.1 408 "));
  TestClient body(server->port());
  ASSERT_TRUE(body.Send("POST /echo HTTP/1.1\r\nContent-Length: 10\r\n\r\nfive."));
  EXPECT_THAT(body.ReadToEnd(), StartsWith("HTTP/1.1 408 "));
}

TEST(HttpServerTest, AClientThatDoesNotReadIsCut) {
  HttpServerOptions options = TestOptions();
  options.max_connections = 1;
  options.write_timeout = absl::Milliseconds(20);
  options.min_bytes_per_second = int64_t{1} << 40;
  // Until then it is idle, and gives way to the next client as such.
  absl::Notification asked;
  // More than lies between two sockets.
  const auto server = Serve(options, {{"GET", "/large",
                                       [&](const HttpRequest&) {
                                         asked.Notify();
                                         return HttpResponse{200, "text/plain", std::string(64 << 20, 'x')};
                                       }},
                                      {"GET", "/small", [](const HttpRequest&) { return HttpResponse{}; }}});
  TestClient reluctant(server->port());
  ASSERT_TRUE(reluctant.Send(Get("/large")));
  asked.WaitForNotification();
  // Its place is free again once it is cut.
  std::string answer;
  do {
    answer = Ask(*server, Get("/small"));
  } while (answer.compare(0, 13, "HTTP/1.1 200 ") != 0);
}

TEST(HttpServerTest, ASilentConnectionIsClosed) {
  HttpServerOptions options = TestOptions();
  options.idle_timeout = absl::Milliseconds(20);
  const auto server = Serve(options);
  TestClient client(server->port());
  EXPECT_EQ(client.ReadToEnd(), "");
}

TEST(HttpServerTest, AClientThatGoesAwayHurtsNobody) {
  const auto server = Serve(TestOptions());
  for (int i = 0; i < 20; ++i) {
    TestClient client(server->port());
    client.Send(i % 2 == 0 ? Get("/large") : "GET /v2/hea");
  }
  EXPECT_THAT(Ask(*server, Get("/v2/health/live")), EndsWith("live"));
}

TEST(HttpServerTest, APortInUseIsAnErrorThatNamesTheFlag) {
  const auto server = Serve(TestOptions());
  HttpServerOptions options = TestOptions();
  options.port = server->port();
  options.port_flag = "--metrics-port";
  const auto second = HttpServer::Start(options, TestRoutes());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(
      std::string(second.status().message()),
      absl::StrCat("port ", server->port(),
                   " of --metrics-port is in use by another process; pass --metrics-port 0 for a free one"));
}

TEST(HttpServerTest, WhatCannotBeListenedOnIsAnError) {
  HttpServerOptions options = TestOptions();
  options.port = 65536;
  EXPECT_THAT(std::string(HttpServer::Start(options, {}).status().message()),
              HasSubstr("--http-port is 65536, expected 1 to 65535"));
  options.port = 0;
  options.host = "192.0.2.1";
  EXPECT_THAT(std::string(HttpServer::Start(options, {}).status().message()),
              HasSubstr("'192.0.2.1' is no address of this machine"));
  options.host = "no address";
  EXPECT_EQ(HttpServer::Start(options, {}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(HttpServerTest, AFullHouseAnswers503) {
  absl::Notification entered, leave;
  HttpServerOptions options = TestOptions();
  options.max_connections = 1;
  const auto server = Serve(options, {{"GET", "/wait", [&](const HttpRequest&) {
                                         entered.Notify();
                                         leave.WaitForNotification();
                                         return HttpResponse{200, "text/plain", "done"};
                                       }}});
  TestClient busy(server->port());
  ASSERT_TRUE(busy.Send(Get("/wait")));
  entered.WaitForNotification();
  TestClient refused(server->port());
  const std::string answer = refused.ReadToEnd();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\nRetry-After: 1\r\n"));
  leave.Notify();
  EXPECT_THAT(busy.ReadAnswer(), EndsWith("done"));
}

TEST(HttpServerTest, IdleConnectionsMakeRoom) {
  HttpServerOptions options = TestOptions();
  options.max_connections = 2;
  const auto server = Serve(options);
  TestClient silent(server->port());
  TestClient kept(server->port());
  ASSERT_TRUE(kept.Send(Get("/v2/health/live")));
  EXPECT_THAT(kept.ReadAnswer(), EndsWith("live"));
  EXPECT_THAT(Ask(*server, Get("/v2/health/live")), EndsWith("live"));
  EXPECT_EQ(silent.ReadToEnd(), "");
}

TEST(HttpServerTest, StopLetsHandlersAnswerAndEndsConnections) {
  absl::Notification entered, leave;
  auto server = Serve(TestOptions(), {{"GET", "/wait", [&](const HttpRequest&) {
                                         entered.Notify();
                                         leave.WaitForNotification();
                                         return HttpResponse{200, "text/plain", "done"};
                                       }}});
  const int port = server->port();
  TestClient busy(port), idle(port), half(port);
  ASSERT_TRUE(half.Send("GET /wa"));
  ASSERT_TRUE(busy.Send(Get("/wait")));
  entered.WaitForNotification();
  std::thread stopping([&] { server->Stop(); });
  EXPECT_EQ(idle.ReadToEnd(), "");
  EXPECT_EQ(half.ReadToEnd(), "");
  leave.Notify();
  EXPECT_THAT(busy.ReadToEnd(), EndsWith("done"));
  stopping.join();
  EXPECT_FALSE(TestClient(port).connected());
  server->Stop();
  server.reset();
  HttpServerOptions options = TestOptions();
  options.port = port;
  Serve(options);
}

TEST(HttpServerTest, APathIsTakenToPiecesForItsHandler) {
  const auto server =
      Serve(TestOptions(), {{"GET", "/v2/models/{model}", [](const HttpRequest& r) {
                               return HttpResponse{
                                   200, "text/plain",
                                   absl::StrCat(r.path_values.at("model"), "|", r.query, "|",
                                                r.Header("X-tEsT").value_or(""), "|", r.client->Address())};
                             }}});
  EXPECT_THAT(Ask(*server, "GET /v2/models/a%2Fb?c=d HTTP/1.1\r\nx-test: e\r\n\r\n"),
              EndsWith("\r\n\r\na/b|c=d|e|127.0.0.1"));
  EXPECT_THAT(Ask(*server, "GET http://host:1/v2/models/a HTTP/1.1\r\n\r\n"),
              EndsWith("\r\n\r\na|||127.0.0.1"));
}

TEST(HttpServerTest, HeadersOfTheAnswerAndItsPiecesArrive) {
  const auto owner = std::make_shared<const std::string>(size_t{3} << 20, 'y');
  const auto server = Serve(TestOptions(), {{"GET", "/pieces", [&](const HttpRequest&) {
                                               HttpResponse response{200, "text/plain", "head "};
                                               for (int i = 0; i < 100; ++i)
                                                 response.attached.emplace_back("ab");
                                               response.attached.emplace_back(*owner, owner);
                                               response.headers = {{"Inference-Header-Content-Length", "5"}};
                                               return response;
                                             }}});
  const std::string answer = Ask(*server, Get("/pieces"));
  EXPECT_THAT(answer.substr(0, 300), HasSubstr("\r\nInference-Header-Content-Length: 5\r\n"));
  const std::string body = answer.substr(answer.find("\r\n\r\n") + 4);
  EXPECT_THAT(body.substr(0, 9), "head abab");
  EXPECT_EQ(body.size(), 5 + 200 + owner->size());
}

TEST(HttpServerTest, AnErrorBeforeABodyThatDoesNotComeKeepsTheConnection) {
  const auto server = Serve(TestOptions());
  TestClient client(server->port());
  ASSERT_TRUE(client.Send(Get("/nowhere") + Post("/echo", "hello")));
  EXPECT_THAT(client.ReadAnswer(), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(client.ReadAnswer(), EndsWith("hello"));
}

TEST(HttpServerTest, OptionsSayWhatAPathTakes) {
  const auto server = Serve(TestOptions());
  EXPECT_THAT(Ask(*server, "OPTIONS /echo HTTP/1.1\r\n\r\n"),
              testing::AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("\r\nAllow: POST, OPTIONS\r\n")));
}

TEST(HttpServerTest, AClientThatGoesAwayIsNoticedWhileItsAnswerIsAwaited) {
  absl::Notification entered, gone;
  HttpClient* client = nullptr;
  const auto server = Serve(TestOptions(), {{"GET", "/wait", [&](const HttpRequest& r) {
                                               client = r.client;
                                               entered.Notify();
                                               r.client->AwaitDone([&] { gone.Notify(); });
                                               return HttpResponse{};
                                             }}});
  {
    TestClient leaving(server->port());
    ASSERT_TRUE(leaving.Send(Get("/wait")));
    entered.WaitForNotification();
    EXPECT_FALSE(gone.HasBeenNotified());
  }
  gone.WaitForNotification();
  client->Done();
}

TEST(HttpServerTest, AnAnswerFromElsewhereIsAwaited) {
  const auto server = Serve(TestOptions(), {{"GET", "/wait", [&](const HttpRequest& r) {
                                               HttpResponse response;
                                               std::thread elsewhere([&] {
                                                 response.body = "done";
                                                 r.client->Done();
                                               });
                                               r.client->AwaitDone([&] { response.body = "gone"; });
                                               elsewhere.join();
                                               return response;
                                             }}});
  TestClient client(server->port());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(client.Send(Get("/wait")));
    EXPECT_THAT(client.ReadAnswer(), EndsWith("\r\n\r\ndone"));
  }
}

TEST(HttpServerTest, StopIsNoClientThatGoesAway) {
  absl::Notification entered;
  std::atomic<bool> gone = false;
  HttpClient* client = nullptr;
  const auto server = Serve(TestOptions(), {{"GET", "/wait", [&](const HttpRequest& r) {
                                               client = r.client;
                                               entered.Notify();
                                               r.client->AwaitDone([&] { gone = true; });
                                               return HttpResponse{200, "text/plain", "done"};
                                             }}});
  TestClient busy(server->port()), idle(server->port());
  ASSERT_TRUE(busy.Send(Get("/wait")));
  entered.WaitForNotification();
  std::thread stopping([&] { server->Stop(); });
  EXPECT_EQ(idle.ReadToEnd(), "");
  client->Done();
  EXPECT_THAT(busy.ReadToEnd(), EndsWith("done"));
  stopping.join();
  EXPECT_FALSE(gone);
}

TEST(HttpServerTest, ManyClientsAtOnce) {
  HttpServerOptions options = TestOptions();
  options.max_connections = 8;
  const auto server = Serve(options);
  std::vector<std::thread> clients;
  for (int c = 0; c < 8; ++c) {
    clients.emplace_back([&] {
      TestClient client(server->port());
      for (int i = 0; i < 50; ++i) {
        const std::string body = absl::StrCat("request ", i);
        ASSERT_TRUE(client.Send(Post("/echo", body)));
        ASSERT_THAT(client.ReadAnswer(), EndsWith(body));
      }
    });
  }
  for (std::thread& client : clients) client.join();
}

}  // namespace
}  // namespace saccade::server
