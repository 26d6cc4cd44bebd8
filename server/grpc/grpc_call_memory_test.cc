// What calls charge, and the bounds of their messages.
#include <gmock/gmock.h>

#include <string>

#include "server/grpc/testing/handler_fixture.h"
#include "server/http/head_memory.h"

namespace saccade::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

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
  EXPECT_EQ(refusals_.cut, 1U);
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

}  // namespace
}  // namespace saccade::server
