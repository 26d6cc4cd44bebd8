#include "server/grpc/grpc_handler.h"

#include <gmock/gmock.h>

#include <new>
#include <string>
#include <thread>

#include "absl/strings/escaping.h"
#include "server/grpc/testing/handler_fixture.h"
#include "server/grpc/unary.h"
#include "server/http/head_memory.h"

namespace saccade::server {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;
using testing::StartsWith;

// A method that sends its request back.
CallMethod Echo() {
  return UnaryMethod("/test.Service/Echo", "test.Request",
                     [](const std::shared_ptr<UnaryCall>& call, const BytePieces& request) {
                       call->Respond(OwnedBytes("echo of " + TextOf(request)));
                     });
}

std::string Code(const FakeExchange& exchange) { return exchange.answer().Field("grpc-status"); }
std::string Message(const FakeExchange& exchange) { return exchange.answer().Field("grpc-message"); }

class RequestTest : public GrpcHandlerTest {
 protected:
  RequestTest() { Handler({Echo()}); }
};

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

TEST_F(GrpcHandlerTest, DoesNotCancelAFinishedCall) {
  auto exchange = Begin();
  exchange->Stall();
  script_.call->SendAndFinish(OwnedBytes("answer"), {});
  exchange->Break();
  EXPECT_THAT(script_.events, ElementsAre("start", "done"));
}

TEST_F(GrpcHandlerTest, ReleasesAMessageWhenItIsWrittenOrCannotBe) {
  auto owner = std::make_shared<std::string>("answer");
  const std::weak_ptr<std::string> kept = owner;
  auto exchange = Begin();
  exchange->Stall();
  script_.call->Send(BytePieces(*owner, owner));
  owner.reset();
  loop_.RunUntilIdle();
  EXPECT_FALSE(kept.expired());
  exchange->Break();
  EXPECT_TRUE(kept.expired());
  EXPECT_THAT(script_.events, ElementsAre("start", "cancel", "not sent"));
  script_.call->Finish({});
  loop_.RunUntilIdle();
}

TEST_F(GrpcHandlerTest, EndsACallAtItsDeadline) {
  auto exchange = Begin({{"grpc-timeout", "5S"}});
  loop_.Advance(absl::Milliseconds(4999));
  EXPECT_THAT(script_.events, ElementsAre("start"));
  loop_.Advance(absl::Milliseconds(1));
  EXPECT_EQ(Code(*exchange), "4");
  EXPECT_EQ(Message(*exchange), "Deadline Exceeded");
  EXPECT_THAT(script_.events, ElementsAre("start", "cancel"));
  script_.call->Finish({absl::OkStatus()});
  loop_.RunUntilIdle();
  EXPECT_EQ(Code(*exchange), "4");
  EXPECT_EQ(script_.events.back(), "done");
}

TEST_F(GrpcHandlerTest, ResetsACallWhoseAnswerIsNotReadByTheDeadline) {
  auto exchange = Begin({{"grpc-timeout", "5S"}});
  exchange->Stall();
  script_.call->Send(OwnedBytes("answer"));
  loop_.Advance(absl::Seconds(5));
  EXPECT_THAT(script_.events, ElementsAre("start", "cancel", "not sent"));
  script_.call->Finish({});
  // A client whose clock is behind would take a reset for a cancellation.
  loop_.Advance(absl::Milliseconds(999));
  EXPECT_EQ(exchange->answer().reset, std::nullopt);
  loop_.Advance(absl::Milliseconds(1));
  EXPECT_EQ(exchange->answer().reset, ExchangeError::kCancelled);
  loop_.RunUntilIdle();
  EXPECT_EQ(script_.events.back(), "done");
}

TEST_F(GrpcHandlerTest, TellsADeadlineToAClientThatReadsTheRestOfItsAnswer) {
  auto exchange = Begin({{"grpc-timeout", "5S"}});
  exchange->Stall();
  script_.call->Send(OwnedBytes("answer"));
  loop_.Advance(absl::Seconds(5));
  exchange->Resume();
  EXPECT_EQ(exchange->answer().body, Framed("answer"));
  EXPECT_EQ(Code(*exchange), "4");
  script_.call->Finish({});
  loop_.Advance(absl::Seconds(2));
  EXPECT_EQ(exchange->answer().reset, std::nullopt);
  EXPECT_EQ(script_.events.back(), "done");
}

TEST_F(GrpcHandlerTest, AShutdownEndsAStreamWithAStatus) {
  options_.to_end = [](const absl::Status& status) { return CallEnd{status, "", {{"hint", "5"}}}; };
  ReadAll();
  auto exchange = Begin();
  exchange->SendBodyPart(Framed("1"));
  script_.call->Send(OwnedBytes("answer"));
  loop_.RunUntilIdle();
  EXPECT_TRUE(exchange->ShutDown());
  EXPECT_EQ(exchange->answer().reset, std::nullopt);
  EXPECT_EQ(exchange->answer().body, Framed("answer"));
  EXPECT_EQ(Code(*exchange), "14");
  EXPECT_THAT(Message(*exchange), StartsWith("the server is shutting down"));
  EXPECT_EQ(exchange->answer().Field("hint"), "5");
  EXPECT_THAT(script_.events, ElementsAre("start", "message: 1", "sent", "shutdown", "cancel"));
  EXPECT_EQ(script_.call->cancel_code(), absl::StatusCode::kUnavailable);
  script_.call->Finish({});
  loop_.RunUntilIdle();
}

TEST_F(GrpcHandlerTest, AHandlerMayEndItsStreamAfterAShutdown) {
  ReadAll();
  script_.ends_at_shutdown = true;
  auto exchange = Begin();
  exchange->SendBodyPart(Framed("1"));
  EXPECT_TRUE(exchange->ShutDown());
  EXPECT_TRUE(exchange->ShutDown());
  EXPECT_THAT(script_.events, ElementsAre("start", "message: 1", "shutdown")) << "it is told once";
  script_.call->SendAndFinish(OwnedBytes("answer"), {absl::UnavailableError("later")});
  EXPECT_TRUE(exchange->ShutDown()) << "the end is on its way";
  EXPECT_EQ(exchange->answer().body, Framed("answer"));
  EXPECT_EQ(Message(*exchange), "later");
}

TEST_F(RequestTest, AShutdownRefusesCallsOfWhichNothingWasProcessed) {
  auto stream = Begin();
  stream->SendBodyPart(Framed("cut off").substr(0, 7));
  EXPECT_FALSE(stream->ShutDown());
  auto unary = BeginAt(FakeExchange::Head("/test.Service/Echo"));
  unary->SendBodyPart(Framed("without its end"));
  EXPECT_FALSE(unary->ShutDown());
  auto rejected = BeginAt(FakeExchange::Head("/test.Service/Nope"));
  EXPECT_EQ(Code(*rejected), "12");
  EXPECT_THAT(script_.events, ElementsAre("start"));
  script_.call->Finish({});
  loop_.RunUntilIdle();
}

TEST_F(GrpcHandlerTest, HidesTheTextOfExceptions) {
  script_.then = [](const std::string& event) {
    if (event == "start") throw std::runtime_error("secret");
  };
  auto exchange = Begin();
  EXPECT_EQ(Code(*exchange), "13");
  EXPECT_THAT(Message(*exchange), Not(HasSubstr("secret")));
  EXPECT_THAT(script_.events, ElementsAre("start", "cancel"));
  script_.call->Finish({});
  loop_.RunUntilIdle();
  EXPECT_EQ(script_.events.back(), "done");
}

TEST_F(GrpcHandlerTest, ResetsACallWhoseEndCannotBeMade) {
  options_.always_report_load = true;
  options_.load_report = []() -> std::string { throw std::bad_alloc(); };
  script_.then = [this](const std::string& event) {
    // As a handler does that catches exceptions itself.
    if (event != "half-close") return;
    EXPECT_NO_THROW(script_.call->Finish({}));
  };
  auto exchange = Begin();
  script_.call->Read();
  exchange->EndBody();
  EXPECT_EQ(exchange->answer().reset, ExchangeError::kInternal);
  EXPECT_EQ(script_.events.back(), "done");
}

TEST_F(GrpcHandlerTest, ResetsALateCallWhoseEndCannotBeMade) {
  options_.to_end = [](const absl::Status&) -> CallEnd { throw std::bad_alloc(); };
  auto exchange = Begin({{"grpc-timeout", "1S"}});
  loop_.Advance(absl::Seconds(1));
  EXPECT_EQ(exchange->answer().reset, ExchangeError::kInternal);
  EXPECT_THAT(script_.events, ElementsAre("start", "cancel"));
  script_.call->Finish({});
  loop_.RunUntilIdle();
  EXPECT_EQ(script_.events.back(), "done");
}

TEST_F(GrpcHandlerTest, LetsOnlyTheMessageThatWasAskedForCome) {
  auto exchange = Begin();
  exchange->SendBodyPart(PrefixOf(500000) + std::string(65530, 'x'));
  EXPECT_EQ(exchange->allowed(), Exchange::kFirstBodyBytes);
  EXPECT_EQ(ledger_.charged(), 65535);
  script_.call->Read();
  EXPECT_EQ(exchange->allowed(), 500005 + Exchange::kFirstBodyBytes);
  EXPECT_EQ(ledger_.charged(), 500000);
  exchange->SendBodyPart(std::string(500000 - 65530, 'x') + Framed("next"));
  EXPECT_EQ(script_.events.back(), "message: " + std::string(500000, 'x'));
  EXPECT_EQ(exchange->allowed(), 500005 + Exchange::kFirstBodyBytes);
  script_.call->Read();
  loop_.RunUntilIdle();
  EXPECT_EQ(script_.events.back(), "message: next");
  script_.call->Finish({});
}

TEST_F(GrpcHandlerTest, GivesAStreamOfSmallMessagesItsWindowBackInLargeSteps) {
  ReadAll();
  auto exchange = Begin();
  const std::string message = Framed(std::string(995, 'x'));
  uint64_t allowed = exchange->allowed();
  int steps = 0;
  for (int i = 0; i < 1000; ++i) {
    exchange->SendBodyPart(message);
    ASSERT_LE(exchange->received(), exchange->allowed());
    if (exchange->allowed() != allowed) ++steps;
    allowed = exchange->allowed();
  }
  EXPECT_EQ(script_.events.size(), 1001u);
  EXPECT_LE(steps, 1000000 / 32000);
  script_.call->Finish({});
}

TEST_F(GrpcHandlerTest, RefusesAMessageByItsPrefix) {
  options_.to_end = [](const absl::Status& status) { return CallEnd{status, "details"}; };
  ReadAll();
  auto exchange = Begin();
  exchange->SendBodyPart(PrefixOf((1 << 20) + 1));
  EXPECT_EQ(Code(*exchange), "8");
  EXPECT_EQ(exchange->answer().Field("grpc-status-details-bin"), "ZGV0YWlscw");
  EXPECT_EQ(exchange->allowed(), Exchange::kFirstBodyBytes);
  EXPECT_THAT(refusals_.counted, ElementsAre(Refusal::kBodyTooLarge));
  EXPECT_THAT(script_.events, ElementsAre("start", "cancel"));
  EXPECT_EQ(ledger_.peak(), 0);
  script_.call->Finish({});
  loop_.RunUntilIdle();
}

TEST_F(GrpcHandlerTest, AnOpenCallsHeadIsCharged) {
  FakeLedger heads(kOpenRequestBytes + 5000);
  options_.charge_request = ChargeTo(&heads);
  auto first = Begin({{"a", std::string(2000, 'x')}});
  Call* const call = script_.call;
  EXPECT_GT(heads.charged(), kOpenRequestBytes + 4000) << "it is held twice";
  auto second = Begin();
  EXPECT_EQ(Code(*second), "8");
  EXPECT_THAT(refusals_.counted, ElementsAre(Refusal::kBytes));
  call->Finish({});
  loop_.RunUntilIdle();
  second.reset();
  first.reset();
  loop_.RunUntilIdle();
  EXPECT_EQ(heads.charged(), 0);
}

// A method whose messages have at most 100 bytes, and which reads one.
class SmallMessageTest : public GrpcHandlerTest {
 protected:
  SmallMessageTest() {
    options_.charge_request = ChargeTo(&heads_);
    options_.ledger = &full_;
    CallMethod method = ScriptedHandler::Method("/test.Service/Small", &script_);
    method.max_message_bytes = 100;
    Handler({method});
    script_.then = [this](const std::string& event) {
      if (event == "start") script_.call->Read();
    };
    exchange_ = BeginAt(FakeExchange::Head("/test.Service/Small"));
  }
  ~SmallMessageTest() override {
    script_.call->Finish({});
    loop_.RunUntilIdle();
    exchange_.reset();
    loop_.RunUntilIdle();
    EXPECT_EQ(heads_.charged(), 0);
  }

  FakeLedger heads_;
  FakeLedger full_{0};
  std::unique_ptr<FakeExchange> exchange_;
};

TEST_F(SmallMessageTest, IsChargedWithTheHead) {
  EXPECT_EQ(heads_.charged(), HeadMemory(exchange_->head()) + 100);
  exchange_->SendBodyPart(Framed(std::string(100, 'x')));
  EXPECT_THAT(script_.events, ElementsAre("start", "message: " + std::string(100, 'x')));
}

TEST_F(SmallMessageTest, BytesBeyondItEndTheCall) {
  exchange_->SendBodyPart(Framed("one"));
  EXPECT_EQ(Code(*exchange_), "");
  exchange_->SendBodyPart("x");
  EXPECT_EQ(Code(*exchange_), "3");
  EXPECT_THAT(Message(*exchange_), HasSubstr("this method takes one message"));
  EXPECT_THAT(refusals_.counted, ElementsAre(Refusal::kMalformed));
  EXPECT_THAT(script_.events, ElementsAre("start", "message: one", "cancel"));
}

TEST_F(SmallMessageTest, EndsTheCallIfItDoesNotComeInTime) {
  loop_.Advance(absl::Milliseconds(9999));
  EXPECT_EQ(Code(*exchange_), "");
  loop_.Advance(absl::Milliseconds(1));
  EXPECT_EQ(Code(*exchange_), "4");
  EXPECT_THAT(Message(*exchange_), HasSubstr("the call's message did not come within 10s"));
  EXPECT_THAT(refusals_.counted, ElementsAre(Refusal::kStalledUpload));
}

TEST_F(SmallMessageTest, LeavesTheCallOpenOnceItHasCome) {
  exchange_->SendBodyPart(Framed("one"));
  loop_.Advance(absl::Hours(1));
  EXPECT_EQ(Code(*exchange_), "");
  EXPECT_THAT(script_.events, ElementsAre("start", "message: one"));
}

TEST_F(GrpcHandlerTest, NamesTheMethodsBoundIfItIsTheServersToo) {
  options_.max_message_bytes = 100;
  CallMethod method = ScriptedHandler::Method("/test.Service/Small", &script_);
  method.max_message_bytes = 100;
  Handler({method});
  ReadAll();
  auto exchange = BeginAt(FakeExchange::Head("/test.Service/Small"));
  exchange->SendBodyPart(PrefixOf(101));
  EXPECT_THAT(Message(*exchange), HasSubstr("more than the 100 that this method takes"));
  script_.call->Finish({});
  loop_.RunUntilIdle();
}

TEST_F(GrpcHandlerTest, AChargeThatHasToBeLeftSoonWaitsForNoClient) {
  options_.charge_request = [](absl::string_view /*client*/, const RequestHead& /*head*/, int64_t /*bytes*/) {
    RequestCharge charge;
    charge.max_client_wait = absl::Seconds(1);
    return charge;
  };
  Handler({Echo()});
  auto silent = BeginAt(FakeExchange::Head("/test.Service/Echo"));
  loop_.Advance(absl::Seconds(1));
  EXPECT_EQ(Code(*silent), "4");
  EXPECT_THAT(Message(*silent), HasSubstr("did not come within 1s"));
  const auto ask = [this](bool reads) {
    auto exchange = BeginAt(FakeExchange::Head("/test.Service/Echo"));
    if (!reads) exchange->Stall();
    exchange->SendBodyPart(Framed("hello"));
    exchange->EndBody();
    return exchange;
  };
  auto unread = ask(/*reads=*/false);
  auto read = ask(/*reads=*/true);
  loop_.Advance(absl::Milliseconds(999));
  EXPECT_EQ(unread->answer().reset, std::nullopt);
  loop_.Advance(absl::Milliseconds(1));
  EXPECT_EQ(unread->answer().reset, ExchangeError::kCancelled);
  EXPECT_THAT(refusals_.counted, ElementsAre(Refusal::kStalledUpload, Refusal::kStalledDownload));
  EXPECT_EQ(Code(*read), "0");
  EXPECT_EQ(read->answer().reset, std::nullopt);
  loop_.RunUntilIdle();
}

TEST_F(GrpcHandlerTest, ASmallAnswerAsTextIsNotCharged) {
  FakeLedger full(0);
  options_.ledger = &full;
  auto exchange = Begin({}, "application/grpc-web-text");
  script_.call->Send(OwnedBytes("answer"));
  loop_.RunUntilIdle();
  EXPECT_THAT(script_.events, ElementsAre("start", "sent"));
  script_.call->Finish({});
  loop_.RunUntilIdle();
}

TEST_F(SmallMessageTest, IsRefusedByItsPrefixIfItIsLarger) {
  exchange_->SendBodyPart(PrefixOf(101));
  EXPECT_EQ(Code(*exchange_), "8");
  EXPECT_THAT(Message(*exchange_), HasSubstr("101 bytes, more than the 100 that this method takes"));
  EXPECT_THAT(refusals_.counted, ElementsAre(Refusal::kBodyTooLarge));
}

class SmallCompressedMessageTest : public SmallMessageTest {
 protected:
  SmallCompressedMessageTest() {
    script_.call->Finish({});
    loop_.RunUntilIdle();
    script_.events.clear();
    exchange_ = BeginAt(FakeExchange::Head("/test.Service/Small", {{"grpc-encoding", "gzip"}}));
  }
};

TEST_F(SmallCompressedMessageTest, IsChargedWithTheHead) {
  exchange_->SendBodyPart(Framed(Compressed(std::string(100, 'x'), /*gzip=*/true), 1));
  EXPECT_THAT(script_.events, ElementsAre("start", "message: " + std::string(100, 'x')));
}

TEST_F(SmallCompressedMessageTest, IsRefusedIfItBecomesLarger) {
  exchange_->SendBodyPart(Framed(Compressed(std::string(101, 'x'), /*gzip=*/true), 1));
  EXPECT_EQ(Code(*exchange_), "8");
  EXPECT_THAT(Message(*exchange_),
              HasSubstr("more than 100 bytes when decompressed, which is this method's"));
  EXPECT_THAT(refusals_.counted, ElementsAre(Refusal::kDecompressedTooLarge));
}

class SmallLedgerTest : public GrpcHandlerTest {
 protected:
  SmallLedgerTest() { options_.ledger = &small_; }
  ~SmallLedgerTest() override { EXPECT_EQ(small_.charged(), 0); }
  FakeLedger small_{100000};
};

TEST_F(SmallLedgerTest, RefusesWhatTheLedgerDoesNotTake) {
  ReadAll();
  auto exchange = Begin();
  exchange->SendBodyPart(PrefixOf(100001));
  EXPECT_EQ(Code(*exchange), "8");
  EXPECT_EQ(Message(*exchange), "no room for 100001 bytes");
  EXPECT_EQ(exchange->allowed(), Exchange::kFirstBodyBytes);
  EXPECT_THAT(refusals_.counted, ElementsAre(Refusal::kBytes));
  script_.call->Finish({});
  loop_.RunUntilIdle();
}

TEST_F(SmallLedgerTest, RefusesBytesThatNobodyAskedFor) {
  auto first = Begin();
  first->SendBodyPart(Framed("early"));
  Call* const first_call = script_.call;
  auto second = Begin();
  second->SendBodyPart(Framed("early"));
  EXPECT_EQ(Code(*second), "8");
  EXPECT_THAT(refusals_.counted, ElementsAre(Refusal::kBytes));
  script_.call->Finish({});
  first_call->Finish({});
}

TEST_F(GrpcHandlerTest, AnAnswerIsChargedUntilItIsWritten) {
  auto exchange = Begin();
  script_.call->Send(OwnedBytes(std::string(kUnchargedAnswerBytes, 'x')));
  EXPECT_EQ(ledger_.charged(), 0);
  loop_.RunUntilIdle();
  exchange->Stall();
  script_.call->Send(OwnedBytes(std::string(5000, 'x')));
  EXPECT_EQ(ledger_.charged(), 5000);
  exchange->Resume();
  EXPECT_EQ(ledger_.charged(), 0);
  script_.call->Finish({});
  loop_.RunUntilIdle();
}

TEST_F(GrpcHandlerTest, AnAnswerThatItsHandlerChargesIsNotChargedAgain) {
  CallMethod method = ScriptedHandler::Method("/test.Service/Charges", &script_);
  method.charges_answers = true;
  Handler({method});
  auto exchange = BeginAt(FakeExchange::Head("/test.Service/Charges"));
  exchange->Stall();
  script_.call->Send(OwnedBytes(std::string(5000, 'x')));
  EXPECT_EQ(ledger_.charged(), 0);
  exchange->Resume();
  script_.call->Finish({});
  loop_.RunUntilIdle();
}

TEST_F(GrpcHandlerTest, AnAnswerThatHasNoRoomIsAnError) {
  FakeLedger full(4000);
  options_.ledger = &full;
  auto exchange = Begin();
  script_.call->Send(OwnedBytes(std::string(5000, 'x')));
  loop_.RunUntilIdle();
  EXPECT_EQ(Code(*exchange), "8");
  EXPECT_THAT(refusals_.counted, ElementsAre(Refusal::kBytes));
  script_.call->Finish({});
  loop_.RunUntilIdle();
}

TEST_F(GrpcHandlerTest, ReleasesHalfAMessageInEveryEnd) {
  for (const std::string end : {"break", "half-close", "finish", "deadline", "malformed"}) {
    SCOPED_TRACE(end);
    ReadAll();
    auto exchange = Begin({{"grpc-timeout", "1S"}});
    exchange->SendBodyPart(Framed("whole") + PrefixOf(1000000) + "half");
    Call* const call = script_.call;
    EXPECT_EQ(ledger_.charged(), 1000000);
    if (end == "break") exchange->Break();
    if (end == "half-close") exchange->EndBody();
    if (end == "deadline") loop_.Advance(absl::Seconds(1));
    if (end == "malformed") exchange->SendBodyPart(std::string(1000010, 2));
    call->Finish({});
    EXPECT_EQ(ledger_.charged(), 0);
    loop_.RunUntilIdle();
    EXPECT_EQ(script_.events.back(), "done");
    if (end == "half-close" || end == "malformed") {
      EXPECT_EQ(Code(*exchange), "13");
    }
  }
}

TEST_F(GrpcHandlerTest, EndsAMessageThatComesTooSlowly) {
  options_.min_bytes_per_second = 1000;
  ReadAll();
  auto exchange = Begin();
  // Waiting for a message is no fault.
  loop_.Advance(absl::Hours(1));
  exchange->SendBodyPart(PrefixOf(10000));
  // A second of grace, then 1000 bytes a second.
  for (int second = 0; second < 5; ++second) {
    loop_.Advance(absl::Seconds(1));
    exchange->SendBodyPart(std::string(1000, 'x'));
  }
  EXPECT_EQ(Code(*exchange), "");
  loop_.Advance(absl::Milliseconds(1004));
  EXPECT_EQ(Code(*exchange), "");
  loop_.Advance(absl::Milliseconds(1));
  EXPECT_EQ(Code(*exchange), "4");
  EXPECT_THAT(Message(*exchange), HasSubstr("5005 of 10005 bytes"));
  EXPECT_THAT(refusals_.counted, ElementsAre(Refusal::kStalledUpload));
  EXPECT_THAT(script_.events, ElementsAre("start", "cancel"));
  EXPECT_EQ(ledger_.charged(), 0);
  script_.call->Finish({});
  loop_.RunUntilIdle();
}

// A loop that the system did not let run for a while: its timers are late.
class StalledLoop final : public Loop {
 public:
  explicit StalledLoop(ManualLoop* loop) : loop_(loop), now_(loop->Now()) {}
  absl::Time Now() const override { return now_; }
  void Post(Task task) override { loop_->Post(std::move(task)); }
  bool IsCurrent() const override { return loop_->IsCurrent(); }

  void Run(absl::Duration after) {
    now_ += after;
    timers().RunDue(now_);
  }

 private:
  ManualLoop* const loop_;
  absl::Time now_;
};

TEST_F(GrpcHandlerTest, DoesNotBlameTheClientForAStall) {
  ReadAll();
  StalledLoop stalled(&loop_);
  FakeExchange exchange(&loop_, FakeExchange::Head(kPath));
  exchange.ShowLoop(&stalled);
  exchange.Begin(Handler());
  exchange.SendBodyPart(PrefixOf(10000));
  stalled.Run(absl::Minutes(5));
  stalled.Run(absl::Milliseconds(999));
  EXPECT_EQ(Code(exchange), "");
  stalled.Run(absl::Milliseconds(1));
  stalled.Run(absl::Milliseconds(1));
  EXPECT_EQ(Code(exchange), "4");
  script_.call->Finish({});
  loop_.RunUntilIdle();
}

TEST_F(RequestTest, EndsAUnaryCallThatStaysSilent) {
  auto nothing = BeginAt(FakeExchange::Head("/test.Service/Echo"));
  auto not_closed = BeginAt(FakeExchange::Head("/test.Service/Echo"));
  not_closed->SendBodyPart(Framed("hello"));
  loop_.Advance(absl::Milliseconds(9999));
  EXPECT_EQ(Code(*nothing), "");
  loop_.Advance(absl::Milliseconds(1));
  EXPECT_EQ(Code(*nothing), "4");
  EXPECT_EQ(Code(*not_closed), "4");
  EXPECT_THAT(Message(*nothing), HasSubstr("did not come within 10s"));
  EXPECT_THAT(refusals_.counted, ElementsAre(Refusal::kStalledUpload, Refusal::kStalledUpload));
}

TEST_F(GrpcHandlerTest, ReadsCompressedMessages) {
  ReadAll();
  for (const bool gzip : {true, false}) {
    auto exchange = Begin({{"grpc-encoding", gzip ? "gzip" : "deflate"}});
    exchange->SendBodyPart(Framed(Compressed("small", gzip), 1) + Framed("as it is"));
    EXPECT_EQ(script_.events[script_.events.size() - 2], "message: small");
    EXPECT_EQ(script_.events.back(), "message: as it is");
    script_.call->Finish({});
  }
}

TEST_F(GrpcHandlerTest, StopsABomb) {
  ReadAll();
  auto exchange = Begin({{"grpc-encoding", "gzip"}});
  exchange->SendBodyPart(Framed(Compressed(std::string(16 << 20, '\0'), true), 1));
  EXPECT_EQ(Code(*exchange), "8");
  EXPECT_THAT(refusals_.counted, ElementsAre(Refusal::kDecompressedTooLarge));
  EXPECT_LT(ledger_.peak(), 2 << 20);
  EXPECT_EQ(ledger_.charged(), 0);
  script_.call->Finish({});
  loop_.RunUntilIdle();
}

TEST_F(GrpcHandlerTest, ForgetsABombWhoseClientIsGone) {
  options_.max_message_bytes = 32 << 20;
  ReadAll();
  // Creates the handler. Its own call ends here.
  Begin({{"grpc-encoding", "gzip"}});
  script_.call->Finish({});
  loop_.RunUntilIdle();
  auto exchange =
      std::make_unique<FakeExchange>(&loop_, FakeExchange::Head(kPath, {{"grpc-encoding", "gzip"}}));
  exchange->Begin(*handler_);
  Call* const call = script_.call;
  // The client goes after the first of many steps.
  loop_.Post([&] { exchange.reset(); });
  exchange->SendBodyPart(Framed(Compressed(std::string(16 << 20, '\0'), true), 1));
  EXPECT_EQ(script_.events.back(), "cancel");
  EXPECT_LT(ledger_.peak(), 8 << 20);
  EXPECT_EQ(ledger_.charged(), 0);
  call->Finish({});
  loop_.RunUntilIdle();
}

TEST_F(GrpcHandlerTest, RefusesAResponseAboveTheBound) {
  auto exchange = Begin();
  script_.call->Send(OwnedBytes(std::string((1 << 20) + 1, 'x')));
  loop_.RunUntilIdle();
  EXPECT_EQ(Code(*exchange), "8");
  EXPECT_THAT(Message(*exchange), HasSubstr("--max-message-bytes"));
  EXPECT_THAT(script_.events, ElementsAre("start", "cancel", "not sent"));
  script_.call->Finish({});
  loop_.RunUntilIdle();
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
