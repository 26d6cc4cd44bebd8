#include "server/grpc/grpc_handler.h"

#include <gmock/gmock.h>

#include <string>
#include <thread>

#include "absl/strings/escaping.h"
#include "server/grpc/testing/handler_fixture.h"
#include "server/grpc/unary.h"

namespace saccade::server {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;
using testing::StartsWith;

TEST_F(RequestTest, AnswersAUnaryCall) {
  auto exchange = BeginAt(FakeExchange::Head("/test.Service/Echo"));
  EXPECT_EQ(exchange->answer().status, 0);
  exchange->SendBodyPart(Framed("hello"));
  exchange->EndBody();
  EXPECT_EQ(exchange->answer().status, 200);
  EXPECT_EQ(exchange->answer().Field("content-type"), "application/grpc");
  EXPECT_EQ(exchange->answer().Field("grpc-accept-encoding"), "identity,deflate,gzip");
  EXPECT_EQ(exchange->answer().body, Framed("echo of hello"));
  EXPECT_THAT(*exchange->answer().trailers, ElementsAre(Pair("grpc-status", "0")));
  EXPECT_TRUE(exchange->over());
  EXPECT_EQ(exchange->allowed(), Exchange::kFirstBodyBytes);
}

TEST_F(RequestTest, KnowsGrpcByItsContentType) {
  EXPECT_TRUE(IsGrpc(FakeExchange::Head("/", {}, "application/grpc")));
  EXPECT_TRUE(IsGrpc(FakeExchange::Head("/", {}, "application/grpc+json")));
  EXPECT_TRUE(IsGrpc(FakeExchange::Head("/", {}, "application/grpc-web-text")));
  EXPECT_FALSE(IsGrpc(FakeExchange::Head("/", {}, "application/json")));
  EXPECT_FALSE(IsGrpc(RequestHead{}));
}

TEST_F(RequestTest, TellsErrorsBeforeAnyMessageInTheHead) {
  auto unknown = BeginAt(FakeExchange::Head("/test.Service/Nope"));
  EXPECT_EQ(unknown->answer().status, 200);
  EXPECT_THAT(*unknown->answer().trailers, IsEmpty());
  EXPECT_THAT(unknown->answer().head, Contains(Pair("grpc-status", "12")));
  EXPECT_EQ(Message(*unknown), "unknown method Nope for service test.Service");
  EXPECT_EQ(Message(*BeginAt(FakeExchange::Head("/other.Service/Method"))), "unknown service other.Service");
  EXPECT_THAT(Message(*BeginAt(FakeExchange::Head("/nothing"))), HasSubstr("malformed method name"));
}

TEST_F(RequestTest, RefusesOtherKindsOfRequests) {
  EXPECT_EQ(Begin({}, "application/grpc+json")->answer().status, 415);
  RequestHead get = FakeExchange::Head(kPath);
  get.method = "GET";
  EXPECT_EQ(BeginAt(get)->answer().status, 405);
  RequestHead http1 = FakeExchange::Head(kPath);
  http1.version = HttpVersion::kHttp1;
  EXPECT_EQ(BeginAt(http1)->answer().status, 505);
  EXPECT_THAT(script_.events, IsEmpty());
}

TEST_F(RequestTest, RefusesUnknownEncodingsTimeoutsAndMetadata) {
  auto encoding = Begin({{"grpc-encoding", "br"}});
  EXPECT_EQ(Code(*encoding), "12");
  EXPECT_EQ(encoding->answer().Field("grpc-accept-encoding"), "identity,deflate,gzip");
  EXPECT_THAT(Message(*encoding), HasSubstr("identity,deflate,gzip"));
  EXPECT_EQ(Code(*Begin({{"grpc-timeout", "soon"}})), "13");
  EXPECT_EQ(Code(*Begin({{"key-bin", "***"}})), "13");
}

// Each value becomes an entry with a copy of the name.
TEST_F(RequestTest, RefusesManyJoinedValues) {
  EXPECT_EQ(Code(*Begin({{"key-bin", std::string(8, ',')}})), "3");
  EXPECT_EQ(Code(*Begin({{std::string(1000, 'a') + "-bin", ","}})), "3");
  auto few = Begin({{"key-bin", std::string(7, ',')}});
  EXPECT_EQ(script_.call->start().metadata.size(), 8u);
  script_.call->Finish({});
}

// Answers that nobody reads keep their text.
TEST_F(RequestTest, ErrorsRepeatOnlyTheBeginningOfWhatWasSent) {
  const std::string longer(4000, '\x80');
  EXPECT_LT(Message(*Begin({}, "application/grpc-" + longer)).size(), 1500u);
  EXPECT_LT(Message(*BeginAt(FakeExchange::Head("/test.Service/" + longer))).size(), 1500u);
  EXPECT_LT(Message(*BeginAt(FakeExchange::Head("/" + longer + "/x"))).size(), 1500u);
  EXPECT_LT(Message(*Begin({{"grpc-timeout", longer}})).size(), 1500u);
  EXPECT_LT(Message(*Begin({{"grpc-encoding", longer}})).size(), 1500u);
}

TEST_F(GrpcHandlerTest, ChecksTheTokenFirst) {
  options_.check_token = [](absl::string_view path, absl::Span<const absl::string_view> tokens) {
    EXPECT_THAT(std::string(path), StartsWith("/test.Service/"));
    return tokens.size() == 1 && tokens[0] == "Bearer good" ? absl::OkStatus()
                                                            : absl::UnauthenticatedError("no token");
  };
  EXPECT_EQ(Code(*Begin()), "16");
  EXPECT_EQ(Code(*Begin({{"authorization", "Bearer bad"}})), "16");
  // Strangers do not learn which methods exist.
  EXPECT_EQ(Code(*BeginAt(FakeExchange::Head("/test.Service/Nope"))), "16");
  EXPECT_THAT(refusals_.counted,
              ElementsAre(Refusal::kUnauthenticated, Refusal::kUnauthenticated, Refusal::kUnauthenticated));
  EXPECT_THAT(script_.events, IsEmpty());
  auto allowed = Begin({{"authorization", "Bearer good"}});
  EXPECT_THAT(script_.events, ElementsAre("start"));
  script_.call->Finish({});
}

TEST_F(GrpcHandlerTest, ChecksTheArrivalBeforeAnythingElse) {
  options_.check_arrival = [](const RequestHead& /*head*/, const Peer& /*peer*/) -> absl::StatusOr<Caller> {
    return absl::ResourceExhaustedError("too fast");
  };
  options_.check_token = [](absl::string_view /*path*/, absl::Span<const absl::string_view> /*tokens*/) {
    ADD_FAILURE();
    return absl::OkStatus();
  };
  EXPECT_EQ(Code(*Begin()), "8");
  EXPECT_EQ(Code(*BeginAt(FakeExchange::Head("/test.Service/Nope"))), "8");
  EXPECT_THAT(script_.events, IsEmpty());
}

TEST_F(GrpcHandlerTest, TellsTheHandlerWhatTheClientSent) {
  auto exchange = Begin({{"grpc-timeout", "5S"},
                         {"grpc-encoding", "gzip"},
                         {"key", "value"},
                         {"key-bin", "AP8,AP8="},
                         {"user-agent", "test"}});
  const CallStart& start = script_.call->start();
  EXPECT_EQ(start.method, kPath);
  EXPECT_EQ(start.client, "ipv4:10.0.0.7");
  EXPECT_EQ(start.arrival, loop_.Now());
  EXPECT_EQ(start.deadline, loop_.Now() + absl::Seconds(5));
  const std::string binary("\x00\xFF", 2);
  EXPECT_THAT(start.metadata, ElementsAre(Pair("key", "value"), Pair("key-bin", binary),
                                          Pair("key-bin", binary), Pair("user-agent", "test")));
  script_.call->Finish({});
}

TEST_F(GrpcHandlerTest, StreamsBothWays) {
  ReadAll();
  const auto read = script_.then;
  script_.then = [&](const std::string& event) {
    if (event.rfind("message", 0) == 0) script_.call->Send(OwnedBytes(event));
    if (event == "start" || event == "sent") script_.call->Read();
    if (event == "half-close") {
      script_.call->Finish({absl::AbortedError("that's all"), "details", {{"key-bin", "\xFF"}}});
    }
  };
  auto exchange = Begin();
  exchange->SendBodyPart(Framed("1") + Framed("2").substr(0, 3));
  EXPECT_THAT(script_.events, ElementsAre("start", "message: 1", "sent"));
  exchange->SendBodyPart(Framed("2").substr(3));
  exchange->EndBody();
  EXPECT_THAT(script_.events,
              ElementsAre("start", "message: 1", "sent", "message: 2", "sent", "half-close", "done"));
  EXPECT_EQ(exchange->answer().body, Framed("message: 1") + Framed("message: 2"));
  EXPECT_THAT(*exchange->answer().trailers,
              ElementsAre(Pair("grpc-status", "10"), Pair("grpc-message", "that's all"),
                          Pair("grpc-status-details-bin", absl::Base64Escape("details").substr(0, 10)),
                          Pair("key-bin", "/w")));
  EXPECT_TRUE(script_.destroyed);
}

TEST_F(GrpcHandlerTest, CallsTheHandlerOnlyWhenItsFunctionsHaveReturned) {
  auto exchange = Begin();
  exchange->SendBodyPart(Framed("early"));
  // Not within a callback, on the loop's thread.
  script_.call->Read();
  EXPECT_THAT(script_.events, ElementsAre("start"));
  loop_.RunUntilIdle();
  EXPECT_THAT(script_.events, ElementsAre("start", "message: early"));
  script_.call->Send(OwnedBytes("answer"));
  EXPECT_EQ(exchange->unsent(), Framed("answer").size());
  EXPECT_THAT(script_.events, ElementsAre("start", "message: early"));
  loop_.RunUntilIdle();
  EXPECT_THAT(script_.events, ElementsAre("start", "message: early", "sent"));
  exchange->Break();
  script_.call->Finish({});
  EXPECT_EQ(script_.events.back(), "cancel");
  loop_.RunUntilIdle();
  EXPECT_EQ(script_.events.back(), "done");
}

TEST_F(GrpcHandlerTest, KeepsTheOrderOfFunctionsCalledOnSeveralThreads) {
  auto exchange = Begin();
  // The loop has not yet seen the message when its own thread ends the call.
  std::thread([&] { script_.call->Send(OwnedBytes("last")); }).join();
  script_.call->Finish({});
  loop_.RunUntilIdle();
  EXPECT_EQ(exchange->answer().body, Framed("last"));
  EXPECT_THAT(*exchange->answer().trailers, ElementsAre(Pair("grpc-status", "0")));
}

TEST_F(GrpcHandlerTest, TellsSentOnlyWhenTheMessageIsWritten) {
  auto exchange = Begin();
  exchange->Stall();
  script_.call->Send(OwnedBytes("answer"));
  loop_.RunUntilIdle();
  EXPECT_THAT(script_.events, ElementsAre("start"));
  exchange->Resume();
  EXPECT_THAT(script_.events, ElementsAre("start", "sent"));
  script_.call->Finish({});
}

TEST_F(GrpcHandlerTest, IsDoneOnlyWhenTheEndIsWritten) {
  auto exchange = Begin();
  exchange->Stall();
  script_.call->SendAndFinish(OwnedBytes("answer"), {});
  loop_.RunUntilIdle();
  EXPECT_THAT(script_.events, ElementsAre("start"));
  exchange->Resume();
  EXPECT_THAT(script_.events, ElementsAre("start", "done"));
}

TEST_F(GrpcHandlerTest, KeepsTheCallUntilItsHandlerHasFinished) {
  auto exchange = Begin();
  Call* const call = script_.call;
  exchange.reset();
  EXPECT_THAT(script_.events, ElementsAre("start", "cancel"));
  EXPECT_FALSE(script_.destroyed);
  call->Send(OwnedBytes("nobody reads this"));
  loop_.RunUntilIdle();
  EXPECT_EQ(script_.events.back(), "not sent");
  EXPECT_EQ(call->start().method, kPath);
  call->Finish({});
  loop_.RunUntilIdle();
  EXPECT_THAT(script_.events, ElementsAre("start", "cancel", "not sent", "done"));
  EXPECT_TRUE(script_.destroyed);
}

TEST_F(RequestTest, SpeaksGrpcWeb) {
  for (const HttpVersion version : {HttpVersion::kHttp1, HttpVersion::kHttp2}) {
    RequestHead head = FakeExchange::Head("/test.Service/Echo", {}, "application/grpc-web+proto");
    head.version = version;
    auto exchange = BeginAt(head);
    exchange->SendBodyPart(Framed("hello"));
    exchange->EndBody();
    EXPECT_EQ(exchange->answer().status, 200);
    EXPECT_EQ(exchange->answer().Field("content-type"), "application/grpc-web+proto");
    EXPECT_EQ(exchange->answer().body,
              Framed("echo of hello") + Framed("grpc-status: 0\r\n", static_cast<char>(0x80)));
    EXPECT_THAT(*exchange->answer().trailers, IsEmpty());
  }
}

TEST_F(RequestTest, SpeaksGrpcWebAsTextInAnySplit) {
  const std::string body = absl::Base64Escape(Framed("hello"));
  for (size_t at = 0; at <= body.size(); ++at) {
    auto exchange = BeginAt(FakeExchange::Head("/test.Service/Echo", {}, "application/grpc-web-text"));
    exchange->SendBodyPart(body.substr(0, at));
    exchange->SendBodyPart(body.substr(at));
    exchange->EndBody();
    EXPECT_EQ(exchange->answer().body,
              absl::Base64Escape(Framed("echo of hello")) +
                  absl::Base64Escape(Framed("grpc-status: 0\r\n", static_cast<char>(0x80))));
  }
}

TEST_F(RequestTest, AllowsTheTextOfALargeMessage) {
  auto exchange = BeginAt(FakeExchange::Head("/test.Service/Echo", {}, "application/grpc-web-text"));
  const std::string body = absl::Base64Escape(Framed(std::string(500000, 'x')));
  for (size_t at = 0; at < body.size();) {
    const size_t size = std::min<size_t>(exchange->allowed() - exchange->received(), body.size() - at);
    ASSERT_GT(size, 0u);
    exchange->SendBodyPart(body.substr(at, size));
    at += size;
  }
  exchange->EndBody();
  std::string answer;
  ASSERT_TRUE(absl::Base64Unescape(exchange->answer().body.substr(0, (500005 + 8 + 2) / 3 * 4), &answer));
  EXPECT_EQ(answer, Framed("echo of " + std::string(500000, 'x')));
}

TEST_F(RequestTest, RefusesTextThatIsNotBase64) {
  auto exchange = BeginAt(FakeExchange::Head("/test.Service/Echo", {}, "application/grpc-web-text"));
  exchange->SendBodyPart("AAAA****");
  std::string answer;
  ASSERT_TRUE(absl::Base64Unescape(exchange->answer().body, &answer));
  EXPECT_THAT(answer, HasSubstr("grpc-status: 13"));
  auto cut = BeginAt(FakeExchange::Head("/test.Service/Echo", {}, "application/grpc-web-text"));
  cut->SendBodyPart("AAA");
  cut->EndBody();
  EXPECT_TRUE(cut->over());
  EXPECT_THAT(refusals_.counted, ElementsAre(Refusal::kMalformed, Refusal::kMalformed));
}

TEST_F(RequestTest, TellsErrorsInTheBodyOfGrpcWeb) {
  auto exchange = BeginAt(FakeExchange::Head("/test.Service/Nope", {}, "application/grpc-web"));
  EXPECT_EQ(exchange->answer().status, 200);
  EXPECT_THAT(exchange->answer().body, HasSubstr("grpc-status: 12\r\ngrpc-message: unknown method Nope"));
}

TEST_F(RequestTest, RefusesForeignPages) {
  const HttpHeaders origin = {{"origin", "https://evil.example"}};
  for (const char* type : {"application/grpc-web", "application/grpc-web-text", "application/grpc"}) {
    auto exchange = BeginAt(FakeExchange::Head("/test.Service/Echo", origin, type));
    EXPECT_EQ(exchange->answer().status, 403) << type;
    EXPECT_THAT(exchange->answer().body, HasSubstr("evil.example"));
  }
  EXPECT_THAT(refusals_.counted, ElementsAre(Refusal::kHost, Refusal::kHost, Refusal::kHost));
}

}  // namespace
}  // namespace saccade::server
