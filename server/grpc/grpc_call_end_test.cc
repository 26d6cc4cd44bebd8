// How calls end: deadlines, cancelling, shutdown, exceptions, and clients that are too slow.
#include <gmock/gmock.h>

#include <new>
#include <string>

#include "server/grpc/testing/handler_fixture.h"
#include "server/grpc/unary.h"

namespace saccade::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST_F(GrpcHandlerTest, DoesNotCancelAFinishedCall) {
  auto exchange = Begin();
  exchange->Stall();
  script_.call->SendAndFinish(OwnedBytes("answer"), {});
  exchange->Break();
  EXPECT_THAT(script_.events, ElementsAre("start", "done"));
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

}  // namespace
}  // namespace saccade::server
