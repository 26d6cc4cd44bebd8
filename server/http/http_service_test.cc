#include "server/http/http_service.h"

#include <new>
#include <stdexcept>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/http/head_memory.h"
#include "server/http/testing/frames.h"
#include "server/http/testing/test_service.h"

namespace saccade::server {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::vector<HttpRoute> TestRoutes() {
  return {
      {"GET", "/v2/health/live", Text([](const HttpRequest&) { return "live"; })},
      {"GET", "/empty", Responding([](const HttpRequest&) { return HttpResponse{503, "text/plain", ""}; })},
      {"GET", "/large", Text([](const HttpRequest&) { return std::string(8 << 20, 'x'); })},
      {"GET", "/throw",
       Responding([](const HttpRequest&) -> HttpResponse { throw std::runtime_error("secret"); })},
      {"POST", "/echo", Text([](const HttpRequest& r) { return std::string(r.body); })},
      {.method = "POST",
       .path = "/judged/{name}",
       .handler = Text([](const HttpRequest& r) { return r.path_values.at("name") + std::string(r.body); }),
       .check_head = [](const HttpRequest& r) -> std::optional<HttpResponse> {
         if (r.path_values.at("name") != "wrong") return std::nullopt;
         return HttpError(404, std::string(r.Header("content-type").value_or("")));
       }}};
}

class HttpServiceTest : public ::testing::Test {
 protected:
  HttpServiceTest() { service_.options.max_body_bytes = 1000; }

  std::string Ask(const std::string& request) { return service_.Ask(request); }

  TestService service_{TestRoutes()};
};

TEST_F(HttpServiceTest, AnswersWithTypeAndLength) {
  EXPECT_EQ(Ask(Get("/v2/health/live?verbose=1")),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n"
            "X-Content-Type-Options: nosniff\r\n\r\nlive");
}

TEST_F(HttpServiceTest, OneConnectionCarriesManyRequests) {
  const auto connection = service_.Connect();
  const std::string two = service_.Ask(*connection, Get("/v2/health/live") + Post("/echo", "hello"));
  EXPECT_THAT(two, AllOf(HasSubstr("\r\n\r\nliveHTTP/1.1 200 OK\r\n"), EndsWith("hello")));
  EXPECT_THAT(service_.Ask(*connection, Get("/v2/health/live")), EndsWith("live"));
}

TEST_F(HttpServiceTest, ErrorsAreJson) {
  const std::string unknown = Ask(Get("/nowhere"));
  EXPECT_THAT(unknown, StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(unknown, HasSubstr("Content-Type: application/json\r\n"));
  EXPECT_THAT(unknown, HasSubstr("X-Content-Type-Options: nosniff\r\n"));
  EXPECT_THAT(unknown, HasSubstr(R"({"error":"no such path: /nowhere; there are /echo, /empty, )"));
  EXPECT_THAT(Ask("DELETE /echo HTTP/1.1\r\nHost: test\r\n\r\n"), StartsWith("HTTP/1.1 405 "));
  const std::string nonsense = Ask("\x16\x03\x01 not http\r\n\r\n");
  EXPECT_THAT(nonsense, StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(nonsense, HasSubstr("X-Content-Type-Options: nosniff\r\n"));
  EXPECT_THAT(nonsense, EndsWith(R"({"error":"not a well-formed HTTP/1.1 request: bad method"})"));
  const std::string nowhere = Ask(Get("?query"));
  EXPECT_THAT(nowhere, StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(nowhere, HasSubstr("it names no path"));
}

TEST_F(HttpServiceTest, AnExceptionIsA500WithoutItsText) {
  const std::string thrown = Ask(Get("/throw"));
  EXPECT_THAT(thrown, StartsWith("HTTP/1.1 500 "));
  EXPECT_THAT(thrown, EndsWith(R"({"error":"internal error"})"));
}

TEST_F(HttpServiceTest, AnEmptyAnswerStaysEmpty) {
  EXPECT_THAT(Ask(Get("/empty")), AllOf(StartsWith("HTTP/1.1 503 "), EndsWith("\r\n\r\n")));
}

TEST_F(HttpServiceTest, HeadHasNoBody) {
  EXPECT_THAT(Ask("HEAD /v2/health/live HTTP/1.1\r\nHost: test\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("Content-Length: 4\r\n"), EndsWith("\r\n\r\n")));
}

TEST_F(HttpServiceTest, ALargeAnswerArrivesWhole) {
  const std::string answer = Ask(Get("/large"));
  EXPECT_EQ(answer.size() - answer.find("\r\n\r\n") - 4, size_t{8} << 20);
}

TEST_F(HttpServiceTest, RangesAreIgnored) {
  EXPECT_THAT(Ask(Get("/v2/health/live", "Range: bytes=0-0,1-1,0-0\r\n")),
              AllOf(StartsWith("HTTP/1.1 200 "), EndsWith("\r\n\r\nlive")));
}

TEST_F(HttpServiceTest, AFormArrivesAsItWasSent) {
  for (const char* type : {"multipart/form-data; boundary=b", "application/x-www-form-urlencoded"}) {
    EXPECT_THAT(Ask(Post("/echo", "--b a=1&b=2", absl::StrCat("Content-Type: ", type, "\r\n"))),
                EndsWith("\r\n\r\n--b a=1&b=2"));
  }
}

TEST_F(HttpServiceTest, ABodyOverTheBoundIs413AndIsNotTakenForARequest) {
  EXPECT_THAT(Ask(Post("/echo", std::string(1000, 'x'))), StartsWith("HTTP/1.1 200 "));
  const std::string hidden = Get("/v2/health/live");
  const std::string answer = Ask(Post("/echo", hidden + std::string(1001 - hidden.size(), 'x')));
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(answer, HasSubstr("the body has 1001 bytes, more than the 1000 bytes taken"));
  EXPECT_THAT(answer, Not(HasSubstr("HTTP/1.1 200 ")));
  EXPECT_EQ(service_.refusals.Of(Refusal::kBodyTooLarge), 1);
}

TEST_F(HttpServiceTest, ABodyThatIsRefusedIsNotAskedFor) {
  const std::string expect = "Host: a\r\nExpect: 100-continue\r\n";
  const std::string answer =
      Ask(absl::StrCat("POST /echo HTTP/1.1\r\n", expect, "Content-Length: 1001\r\n\r\n"));
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(answer, HasSubstr("more than the 1000 bytes taken"));
  const auto taken = service_.Connect();
  EXPECT_THAT(
      service_.Ask(*taken, absl::StrCat("POST /echo HTTP/1.1\r\n", expect, "Content-Length: 2\r\n\r\n")),
      StartsWith("HTTP/1.1 100 "));
  EXPECT_THAT(service_.Ask(*taken, "ok"), EndsWith("ok"));
}

TEST_F(HttpServiceTest, WhatTheHeadDecidesIsAnsweredInPlaceOf100) {
  const auto ask = [this](const std::string& begin, const std::string& fields = "") {
    return Ask(absl::StrCat(begin, " HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n",
                            fields, "\r\n"));
  };
  EXPECT_THAT(ask("POST /judged/wrong", "Content-Type: text/html\r\n"),
              AllOf(StartsWith("HTTP/1.1 404 "), HasSubstr("text/html"), HasSubstr("Connection: close")));
  EXPECT_THAT(ask("POST /nowhere"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(ask("DELETE /echo"), StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(ask("POST /echo", "Content-Encoding: br\r\n"), StartsWith("HTTP/1.1 415 "));
  const auto right = service_.Connect();
  const std::string head = "POST /judged/right HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n";
  EXPECT_THAT(service_.Ask(*right, head + "Content-Length: 2\r\n\r\n"), StartsWith("HTTP/1.1 100 "));
  EXPECT_THAT(service_.Ask(*right, "ok"), EndsWith("rightok")) << "the names in the path are kept";
  EXPECT_THAT(Ask(Post("/judged/wrong", "ok")), EndsWith("wrongok")) << "the handler checks";
}

TEST_F(HttpServiceTest, WhatAClientMayNotDoIsAnsweredInPlaceOf100) {
  service_.options.guard = [](absl::string_view, absl::string_view, const HttpHeaders& headers) {
    std::optional<HttpResponse> refusal;
    if (!FindHeader(headers, "authorization")) refusal = HttpError(401, "no token");
    return refusal;
  };
  const std::string head = "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n";
  EXPECT_THAT(Ask(head + "\r\n"), StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(Ask(head + "Authorization: x\r\n\r\n"), StartsWith("HTTP/1.1 100 "));
}

TEST_F(HttpServiceTest, ABodyOfAGetIsPassedOver) {
  const std::string chunked = "GET /empty HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string whole = "GET /empty HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx";
  EXPECT_THAT(Ask(whole), StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(Ask(chunked + "1\r\nx\r\n0\r\n\r\n"), StartsWith("HTTP/1.1 503 "));
  // The next request on the connection is found.
  EXPECT_THAT(Ask(whole + Post("/echo", "hello")), EndsWith("hello"));
  EXPECT_THAT(Ask(chunked + "0\r\n\r\n"), StartsWith("HTTP/1.1 503 ")) << "an empty one is none";
}

TEST_F(HttpServiceTest, AnErrorBeforeABodyThatDoesNotComeKeepsTheConnection) {
  EXPECT_THAT(Ask(Get("/nowhere") + Post("/echo", "hello")),
              AllOf(StartsWith("HTTP/1.1 404 "), EndsWith("hello")));
}

TEST_F(HttpServiceTest, OptionsSayWhatAPathTakes) {
  EXPECT_THAT(Ask("OPTIONS /echo HTTP/1.1\r\nHost: a\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("\r\nAllow: POST, OPTIONS\r\n")));
}

TEST_F(HttpServiceTest, ForeignPagesAreRefusedBeforeAnythingElse) {
  service_.options.guard = [](absl::string_view, absl::string_view, const HttpHeaders&) {
    ADD_FAILURE();
    return std::optional<HttpResponse>();
  };
  const std::string answer =
      Ask("POST /echo HTTP/1.1\r\nHost: a\r\nOrigin: http://evil\r\nContent-Length: 5\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(Ask(Get("/nowhere", "Sec-Fetch-Site: cross-site\r\n")), StartsWith("HTTP/1.1 403 "));
  EXPECT_EQ(service_.refusals.Of(Refusal::kHost), 2);
}

TEST_F(HttpServiceTest, NamesThatAreNotServedAreRefused) {
  service_.options.origins.allowed_hosts = {"other"};
  EXPECT_THAT(Ask(Get("/v2/health/live")), StartsWith("HTTP/1.1 421 Misdirected Request\r\n"));
}

TEST(HttpGuardTest, AnswersBeforeTheBodyHasCome) {
  TestService service({{"POST", "/echo/{name}",
                        Text([](const HttpRequest& r) { return absl::StrCat(r.client, " ", r.body); })}});
  int asked = 0;
  service.options.guard = [&asked](absl::string_view method, absl::string_view route,
                                   const HttpHeaders& headers) -> std::optional<HttpResponse> {
    ++asked;
    EXPECT_EQ(method, "POST");
    EXPECT_EQ(route, "/echo/{name}");
    if (FindHeader(headers, "Authorization") == "Bearer t") return std::nullopt;
    return HttpError(401, "who are you?");
  };
  const auto refused = service.Connect();
  const std::string answer =
      service.Ask(*refused, "POST /echo/a HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nonly this");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 401 Unauthorized\r\n"));
  EXPECT_THAT(answer, EndsWith("who are you?\"}"));
  EXPECT_TRUE(refused->closed()) << "the rest of the body is no request";
  EXPECT_THAT(service.Ask(Post("/echo/a", "ok", "Authorization: Bearer t\r\n")),
              EndsWith("\r\n\r\nipv4:127.0.0.1 ok"));
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(service.refusals.Of(Refusal::kUnauthenticated), 1);
}

TEST(HttpGuardTest, HeadIsAskedForAsGet) {
  TestService service(TestRoutes());
  service.options.guard = [](absl::string_view method, absl::string_view, const HttpHeaders&) {
    return std::optional<HttpResponse>(HttpError(403, method));
  };
  EXPECT_THAT(service.Ask("HEAD /empty HTTP/1.1\r\nHost: a\r\n\r\n"),
              HasSubstr("\r\nContent-Length: 15\r\n"));
  EXPECT_THAT(service.Ask(Get("/empty")), EndsWith("{\"error\":\"GET\"}"));
}

// Paths that do not exist get 404 without a call of the guard: there is nothing to protect.
TEST(HttpGuardTest, IsNotAskedForPathsThatDoNotExist) {
  TestService service(TestRoutes());
  service.options.guard = [](absl::string_view, absl::string_view, const HttpHeaders&) {
    ADD_FAILURE();
    return std::optional<HttpResponse>();
  };
  EXPECT_THAT(service.Ask(Get("/nowhere")), StartsWith("HTTP/1.1 404 "));
}

TEST(HttpServiceRequestTest, AnArrivalThatIsRefusedIsAnsweredBeforeAnythingElse) {
  TestService service(TestRoutes());
  service.options.to_http = [](const absl::Status& status) { return HttpError(429, status.message()); };
  std::vector<std::string> paths;
  service.options.check_arrival = [&paths](const RequestHead& head,
                                           const Peer& /*peer*/) -> absl::StatusOr<Caller> {
    paths.push_back(head.path);
    return absl::ResourceExhaustedError("too fast");
  };
  EXPECT_THAT(service.Ask(Get("/nowhere")), StartsWith("HTTP/1.1 429 "));
  EXPECT_THAT(paths, ::testing::ElementsAre("/nowhere"));
}

TEST(HttpServiceRequestTest, APathIsTakenToPiecesForItsHandler) {
  TestService service({{"GET", "/v2/models/{model}", Text([](const HttpRequest& r) {
                          return absl::StrCat(r.path_values.at("model"), "|", r.query, "|",
                                              r.Header("X-tEsT").value_or(""), "|", r.client, "|", r.address);
                        })}});
  EXPECT_THAT(service.Ask(Get("/v2/models/a%2Fb?c=d", "x-test: e\r\n")),
              EndsWith("\r\n\r\na/b|c=d|e|ipv4:127.0.0.1|ipv4:127.0.0.1"));
  EXPECT_THAT(service.Ask(Get("http://host:1/v2/models/a")),
              EndsWith("\r\n\r\na|||ipv4:127.0.0.1|ipv4:127.0.0.1"));
  const auto six = service.Connect({"2001:db8::1", false, false});
  EXPECT_THAT(service.Ask(*six, Get("/v2/models/a")), EndsWith("|ipv6:[2001:db8::/64]|ipv6:[2001:db8::1]"));
}

TEST(HttpServiceResponseTest, HeadersOfTheAnswerAndItsPiecesArrive) {
  const auto owner = std::make_shared<const std::string>(size_t{3} << 20, 'y');
  TestService service({{"GET", "/pieces", Responding([&](const HttpRequest&) {
                          HttpResponse response{200, "text/plain", "head "};
                          for (int i = 0; i < 100; ++i) response.attached.emplace_back("ab");
                          response.attached.emplace_back(*owner, owner);
                          response.headers = {{"Inference-Header-Content-Length", "5"}};
                          return response;
                        })}});
  const std::string answer = service.Ask(Get("/pieces"));
  EXPECT_THAT(answer.substr(0, 300), HasSubstr("\r\nInference-Header-Content-Length: 5\r\n"));
  const std::string body = answer.substr(answer.find("\r\n\r\n") + 4);
  EXPECT_EQ(body.substr(0, 9), "head abab");
  EXPECT_EQ(body.size(), 5 + 200 + owner->size());
  EXPECT_EQ(owner.use_count(), 1) << "the pieces are released when they are written";
}

TEST(HttpServiceResponseTest, LargeAnswersAreCompressedOnThePool) {
  TestService service(TestRoutes());
  absl::Notification go;
  const auto connection = service.Connect();
  ASSERT_TRUE(service.pool.Submit("test", [&go] { go.WaitForNotification(); }));
  connection->Send(Get("/large", "Accept-Encoding: gzip\r\n"));
  EXPECT_EQ(connection->TakeOutput(), "");
  go.Notify();
  service.FinishWork();
  const std::string answer = connection->TakeOutput();
  EXPECT_THAT(answer.substr(0, 300),
              AllOf(HasSubstr("\r\nContent-Encoding: gzip\r\n"), HasSubstr("\r\nVary: Accept-Encoding\r\n")));
  EXPECT_LT(answer.size(), 100'000u);
}

TEST(HttpReplyTest, ErrorsAreNotCompressed) {
  TestService service({{"GET", "/wrong", Responding([](const HttpRequest&) {
                          return HttpError(400, std::string(100'000, 'x'));
                        })}});
  const auto connection = service.Connect();
  connection->Send(Get("/wrong", "Accept-Encoding: gzip\r\n"));
  service.FinishWork();
  const std::string answer = connection->TakeOutput();
  EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 400 "), Not(HasSubstr("gzip"))));
  EXPECT_GT(answer.size(), 100'000u);
}

// A test's handle on requests whose replies come later.
struct Held {
  std::shared_ptr<const HttpRequest> request;
  HttpReply reply;
  HttpHandler handler() {
    return [this](std::shared_ptr<const HttpRequest> held, HttpReply later) {
      request = std::move(held);
      reply = std::move(later);
    };
  }
};

TEST(HttpReplyTest, MayComeFromAnotherThread) {
  Held held;
  TestService service({{"POST", "/wait", held.handler()}});
  const auto connection = service.Connect();
  for (int i = 0; i < 3; ++i) {
    connection->Send(Post("/wait", "body"));
    EXPECT_EQ(connection->TakeOutput(), "");
    EXPECT_EQ(held.request->body, "body");
    std::thread([&] { held.reply({200, "text/plain", "done"}); }).join();
    service.loop.RunUntilIdle();
    EXPECT_THAT(connection->TakeOutput(), EndsWith("\r\n\r\ndone"));
    held.reply({200, "text/plain", "once more"});
    service.loop.RunUntilIdle();
    EXPECT_EQ(connection->TakeOutput(), "") << "only the first call counts";
  }
}

TEST(HttpReplyTest, AnOpenRequestsHeadIsCharged) {
  Held held;
  BoundedLedger heads(kOpenRequestBytes + 5000);
  TestService service({{"GET", "/wait", held.handler()}});
  service.options.charge_request = ChargeTo(&heads);
  service.options.to_http = [](const absl::Status& status) { return HttpError(429, status.message()); };
  const std::string request = "GET /wait HTTP/1.1\r\nHost: a\r\nx: " + std::string(2000, 'x') + "\r\n\r\n";
  auto first = service.Connect();
  first->Send(request);
  EXPECT_GT(heads.charged(), kOpenRequestBytes + 4000) << "it is held twice";
  EXPECT_THAT(service.Ask(request), HasSubstr("HTTP/1.1 429 "));
  held.reply({});
  service.loop.RunUntilIdle();
  EXPECT_EQ(heads.charged(), 0);
  EXPECT_THAT(first->TakeOutput(), HasSubstr("HTTP/1.1 200 "));
}

TEST(HttpReplyTest, AnAnswerIsChargedUntilItIsSent) {
  Held held;
  BoundedLedger ledger(8000);
  TestService service({{"GET", "/wait", held.handler()}});
  service.options.ledger = &ledger;
  service.options.to_http = [](const absl::Status& status) { return HttpError(429, status.message()); };
  const auto respond = [&](const HttpResponse& response) {
    auto connection = service.Connect();
    connection->Send(Get("/wait"));
    const int64_t before = ledger.max_charged();
    held.reply(response);
    service.loop.RunUntilIdle();
    EXPECT_EQ(ledger.charged(), 0) << "it was sent";
    return std::make_pair(ledger.max_charged() - before, connection->TakeOutput());
  };
  HttpResponse response{.body = std::string(kUnchargedAnswerBytes, 'x')};
  EXPECT_EQ(respond(response).first, 0);
  response.body = std::string(5000, 'x');
  response.is_charged = true;
  EXPECT_EQ(respond(response).first, 0);
  response.is_charged = false;
  EXPECT_EQ(respond(response).first, 5000);
  response.body = std::string(9000, 'x');
  EXPECT_THAT(respond(response).second, StartsWith("HTTP/1.1 429 "));
}

// Has no memory to charge anything.
class BrokenLedger final : public ByteLedger {
 public:
  absl::StatusOr<ByteCharge> Charge(absl::string_view /*client*/, int64_t /*bytes*/) override {
    throw std::bad_alloc();
  }

 private:
  void Return(absl::string_view /*client*/, int64_t /*bytes*/) override {}
};

TEST(HttpReplyTest, AnAnswerThatCannotBeChargedIsAnError) {
  BrokenLedger ledger;
  TestService service(TestRoutes());
  service.options.ledger = &ledger;
  const std::string answer = service.Ask(Get("/large"));
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 500 "));
  EXPECT_THAT(answer, EndsWith(R"({"error":"internal error"})"));
}

TEST(HttpReplyTest, IsDroppedIfTheClientHasGone) {
  Held held;
  BoundedLedger ledger(1000);
  TestService service({{"POST", "/wait", held.handler()}});
  service.options.ledger = &ledger;
  auto connection = service.Connect();
  connection->Send(Post("/wait", "body"));
  EXPECT_FALSE(held.request->cancellation->cancelled());
  connection->EndSending();
  EXPECT_TRUE(held.request->cancellation->cancelled());
  connection.reset();
  EXPECT_EQ(held.request->body, "body") << "it stays while the request is held";
  EXPECT_EQ(ledger.charged(), 4);
  held.reply({});
  std::thread([&] { held.reply({}); }).join();
  held = {};
  EXPECT_EQ(ledger.charged(), 0);
  service.loop.RunUntilIdle();
}

TEST(HttpReplyTest, IsDroppedIfTheClientGoesWhileItIsOnItsWay) {
  Held held;
  TestService service({{"GET", "/wait", held.handler()}});
  auto connection = service.Connect();
  connection->Send(Get("/wait"));
  std::thread([&] { held.reply({}); }).join();
  connection.reset();
  service.loop.RunUntilIdle();
  EXPECT_TRUE(held.request->cancellation->cancelled());
}

TEST(HttpReplyTest, AHandlerThatForgetsItsReplyAnswers500) {
  TestService service(
      {{"GET", "/forget", [](const std::shared_ptr<const HttpRequest>&, const HttpReply&) {}}});
  EXPECT_THAT(service.Ask(Get("/forget")), StartsWith("HTTP/1.1 500 "));
}

TEST(HttpReplyTest, AnExceptionAfterTheReplyChangesNothing) {
  TestService service(
      {{"GET", "/late", [](const std::shared_ptr<const HttpRequest>&, const HttpReply& reply) {
          reply({200, "text/plain", "done"});
          throw std::runtime_error("late");
        }}});
  EXPECT_THAT(service.Ask(Get("/late")), EndsWith("done"));
}

TEST(HttpReplyTest, AnAnsweredRequestIsNotCancelled) {
  Held held;
  TestService service({{"GET", "/wait", held.handler()}});
  const auto connection = service.Connect();
  connection->Send(Get("/wait"));
  held.reply({});
  service.loop.RunUntilIdle();
  connection->Break();
  EXPECT_FALSE(held.request->cancellation->cancelled());
}

TEST(HttpReplyTest, ADrainIsNoClientThatGoes) {
  Held held;
  TestService service({{"GET", "/wait", held.handler()}});
  const auto connection = service.Connect();
  connection->Send(Get("/wait"));
  connection->session()->Drain(absl::ZeroDuration());
  service.loop.RunUntilIdle();
  EXPECT_FALSE(held.request->cancellation->cancelled());
  held.reply({200, "text/plain", "done"});
  service.loop.RunUntilIdle();
  EXPECT_THAT(connection->TakeOutput(), AllOf(HasSubstr("Connection: close\r\n"), EndsWith("done")));
  EXPECT_TRUE(connection->closed());
}

// The same routes over HTTP/2.
class Http2ServiceTest : public HttpServiceTest {
 protected:
  void SetUp() override {
    connection_ = service_.Connect();
    connection_->Send(std::string(kPreface) + SettingsFrame());
    connection_->TakeOutput();
  }

  // The frames that answer; those of the connection are left out.
  std::vector<Frame> AskFrames(const std::string& frames) {
    std::vector<Frame> answer;
    for (Frame& frame : FramesIn(service_.Ask(*connection_, frames))) {
      if (frame.stream != 0 && frame.type != kWindowUpdate) answer.push_back(std::move(frame));
    }
    return answer;
  }

  std::unique_ptr<SessionPipe> connection_;
};

// HPACK's index of ":status: 200".
constexpr char kOk = '\x88';

TEST_F(Http2ServiceTest, AnswersARequest) {
  const auto answer = AskFrames(Get(1, "/v2/health/live"));
  ASSERT_EQ(answer.size(), 2u);
  EXPECT_EQ(answer[0].type, kHeaders);
  EXPECT_EQ(answer[0].payload[0], kOk);
  EXPECT_EQ(answer[1].payload, "live");
  EXPECT_EQ(answer[1].flags & kEndStream, kEndStream);
}

TEST_F(Http2ServiceTest, TakesABody) {
  const auto answer =
      AskFrames(Post(1, "/echo") + DataFrame(1, "hello ", false) + DataFrame(1, "world", true));
  ASSERT_EQ(answer.size(), 2u);
  EXPECT_EQ(answer[1].payload, "hello world");
}

TEST_F(Http2ServiceTest, HeadHasNoBody) {
  Fields head = GetFields("/v2/health/live");
  head[0].second = "HEAD";
  const auto answer = AskFrames(HeadersFrame(1, head, kEndHeaders | kEndStream));
  ASSERT_EQ(answer.size(), 1u);
  EXPECT_EQ(answer[0].flags & kEndStream, kEndStream);
}

TEST_F(Http2ServiceTest, AGetMayEndWithAnEmptyFrame) {
  const auto answer =
      AskFrames(HeadersFrame(1, GetFields("/v2/health/live"), kEndHeaders) + DataFrame(1, "", true));
  ASSERT_EQ(answer.size(), 2u);
  EXPECT_EQ(answer[1].payload, "live");
  const auto with_body =
      AskFrames(HeadersFrame(3, GetFields("/v2/health/live"), kEndHeaders) + DataFrame(3, "x", true));
  ASSERT_EQ(with_body.size(), 2u);
  EXPECT_EQ(with_body[1].payload, "live") << "the body is passed over";
}

TEST_F(Http2ServiceTest, ABodyOverTheBoundIsRefused) {
  const auto answer = AskFrames(Post(1, "/echo") + DataFrame(1, std::string(1001, 'x'), true));
  ASSERT_GE(answer.size(), 2u);
  EXPECT_THAT(answer[1].payload, HasSubstr("more than the 1000 bytes taken"));
}

TEST(Http2ReplyTest, AResetCancelsTheRequest) {
  Held held;
  TestService service({{"POST", "/wait", held.handler()}});
  const auto connection = service.Connect();
  connection->Send(std::string(kPreface) + SettingsFrame() + Post(1, "/wait") + DataFrame(1, "body", true));
  ASSERT_EQ(connection->session()->open_requests(), 1u);
  EXPECT_FALSE(held.request->cancellation->cancelled());
  connection->Send(ResetFrame(1, kCancel));
  EXPECT_TRUE(held.request->cancellation->cancelled());
  held.reply({});
  service.loop.RunUntilIdle();
  EXPECT_EQ(connection->session()->open_requests(), 0u);
}

// The requests of /v2/health/live hold charges that have to be left soon.
class SoonLeftTest : public ::testing::Test {
 protected:
  SoonLeftTest() {
    service_.options.charge_request = [this](absl::string_view client, const RequestHead& head,
                                             int64_t bytes) {
      RequestCharge charge{heads_.Charge(client, bytes)};
      if (head.path == "/v2/health/live") charge.max_client_wait = absl::Seconds(1);
      return charge;
    };
  }

  BoundedLedger heads_{int64_t{1} << 20};
  TestService service_{TestRoutes()};
};

TEST_F(SoonLeftTest, AnAnswerThatIsNotReadIsEnded) {
  const auto connection = service_.Connect();
  // The client takes no byte of any answer's body.
  const std::string no_window = SettingsFrame(Setting(4, 0));
  connection->Send(std::string(kPreface) + no_window + Get(1, "/v2/health/live") + Get(3, "/nowhere"));
  connection->TakeOutput();
  const int64_t both = heads_.charged();
  service_.loop.Advance(absl::Milliseconds(999));
  EXPECT_EQ(heads_.charged(), both);
  EXPECT_EQ(connection->TakeOutput(), "");
  service_.loop.Advance(absl::Milliseconds(1));
  const auto frames = FramesIn(connection->TakeOutput());
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].type, kRstStream);
  EXPECT_EQ(frames[0].stream, 1u);
  EXPECT_EQ(NumberAt(frames[0].payload, 0, 4), kEnhanceYourCalm);
  EXPECT_LT(heads_.charged(), both);
  EXPECT_GT(heads_.charged(), 0) << "other requests have the time of every answer";
  EXPECT_EQ(service_.refusals.Of(Refusal::kStalledDownload), 1);
  EXPECT_EQ(service_.refusals.cut(), 1U);
  connection->Send(WindowFrame(3, 1000));
  EXPECT_EQ(heads_.charged(), 0);
  EXPECT_EQ(connection->session()->open_requests(), 0u);
}

TEST_F(SoonLeftTest, AnAnswerThatIsReadEndsNothing) {
  const auto connection = service_.Connect();
  EXPECT_THAT(service_.Ask(*connection, Get("/v2/health/live")), EndsWith("live"));
  EXPECT_EQ(heads_.charged(), 0);
  service_.loop.Advance(absl::Seconds(2));
  EXPECT_THAT(service_.Ask(*connection, Get("/v2/health/live")), EndsWith("live"));
  EXPECT_EQ(service_.refusals.Of(Refusal::kStalledDownload), 0);
}

TEST_F(SoonLeftTest, AConnectionThatTakesNoAnswerIsEnded) {
  const auto connection = service_.Connect();
  connection->LimitRoom(0);
  connection->Send(Get("/v2/health/live"));
  EXPECT_GT(heads_.charged(), 0);
  service_.loop.Advance(absl::Seconds(1));
  EXPECT_TRUE(connection->lost());
  EXPECT_EQ(heads_.charged(), 0);
}

TEST(HttpServiceCreateTest, RoutesThatCannotBeServedAreAnError) {
  std::vector<HttpRoute> routes = TestRoutes();
  routes.push_back({"POST", "no slash", routes[0].handler});
  WorkPool pool(1, 1);
  HttpService::Options options;
  options.pool = &pool;
  EXPECT_EQ(HttpService::Create(options, std::move(routes)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(HttpServiceCreateTest, ErrorsOfTheLedgerAreTheDaemons) {
  BoundedLedger ledger(1);
  TestService service(TestRoutes());
  service.options.ledger = &ledger;
  service.options.to_http = [](const absl::Status& status) { return HttpError(429, status.message()); };
  EXPECT_THAT(service.Ask(Post("/echo", "hello")), StartsWith("HTTP/1.1 429 "));
}

}  // namespace
}  // namespace saccade::server
