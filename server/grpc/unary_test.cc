#include "server/grpc/unary.h"

#include <gmock/gmock.h>

#include <atomic>
#include <new>
#include <stdexcept>
#include <thread>

#include "server/grpc/testing/handler_fixture.h"

namespace saccade::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Counts the tasks that are posted to a loop.
class CountingLoop final : public Loop {
 public:
  explicit CountingLoop(ManualLoop* loop) : loop_(loop) {}
  absl::Time Now() const override { return loop_->Now(); }
  void Post(Task task) override {
    ++posted_;
    loop_->Post(std::move(task));
  }
  bool IsCurrent() const override { return loop_->IsCurrent(); }
  int posted() const { return posted_; }

 private:
  ManualLoop* const loop_;
  std::atomic<int> posted_ = 0;
};

class UnaryTest : public GrpcHandlerTest {
 protected:
  UnaryTest() {
    Handler({UnaryMethod(
        kUnary, "test.Request",
        [this](std::shared_ptr<UnaryCall> call, BytePieces request) {
          requests_.push_back(TextOf(request));
          request_ = std::move(request);
          call_ = std::move(call);
          if (throw_) throw std::runtime_error("secret");
        },
        [this](absl::StatusCode code) { no_message_.push_back(code); })});
  }

  // The call must be over before the ledger is looked at.
  ~UnaryTest() override {
    call_ = nullptr;
    request_ = BytePieces();
    loop_.RunUntilIdle();
  }

  std::unique_ptr<FakeExchange> BeginUnary(const std::string& body, HttpHeaders fields = {}) {
    auto exchange = BeginAt(FakeExchange::Head(kUnary, std::move(fields)));
    if (!body.empty()) exchange->SendBodyPart(body);
    exchange->EndBody();
    return exchange;
  }

  static constexpr char kUnary[] = "/test.Service/Unary";
  std::vector<std::string> requests_;
  std::shared_ptr<UnaryCall> call_;
  BytePieces request_;
  std::vector<absl::StatusCode> no_message_;
  bool throw_ = false;
};

TEST_F(UnaryTest, IsCalledWhenTheRequestIsComplete) {
  auto exchange = BeginAt(FakeExchange::Head(kUnary));
  exchange->SendBodyPart(Framed("hello"));
  EXPECT_THAT(requests_, IsEmpty());
  exchange->EndBody();
  EXPECT_THAT(requests_, ElementsAre("hello"));
  // The request's memory stays charged as long as the request is held.
  EXPECT_EQ(ledger_.charged(), 5);
  call_->Respond(OwnedBytes("answer"));
  loop_.RunUntilIdle();
  EXPECT_EQ(exchange->answer().body, Framed("answer"));
  EXPECT_EQ(ledger_.charged(), 5);
  EXPECT_THAT(no_message_, IsEmpty());
}

TEST_F(UnaryTest, AnswersFromAnotherThreadWithOneTask) {
  CountingLoop counting(&loop_);
  auto exchange = std::make_unique<FakeExchange>(&loop_, FakeExchange::Head(kUnary));
  exchange->ShowLoop(&counting);
  exchange->Begin(*handler_);
  exchange->SendBodyPart(Framed("hello"));
  exchange->EndBody();
  EXPECT_EQ(counting.posted(), 0);
  std::thread([&] { call_->Respond(OwnedBytes("answer")); }).join();
  EXPECT_EQ(exchange->answer().status, 0);
  EXPECT_EQ(counting.posted(), 1);
  loop_.RunUntilIdle();
  EXPECT_EQ(exchange->answer().body, Framed("answer"));
  EXPECT_EQ(exchange->answer().Field("grpc-status"), "0");
}

TEST_F(UnaryTest, AnAnswerThatCannotBePostedIsAnError) {
  const auto answer_elsewhere = [this] {
    auto exchange = BeginUnary(Framed("hello"));
    loop_.FailNextPost();
    std::thread([this] { EXPECT_THROW(call_->Respond(OwnedBytes("answer")), std::bad_alloc); }).join();
    return exchange;
  };
  auto dropped = answer_elsewhere();
  std::thread([this] { call_ = nullptr; }).join();
  loop_.RunUntilIdle();
  EXPECT_EQ(dropped->answer().Field("grpc-status"), "13");
  auto failed = answer_elsewhere();
  call_->Fail({absl::ResourceExhaustedError("no memory")});
  EXPECT_EQ(failed->answer().Field("grpc-status"), "8") << "without a task: no earlier one was posted";
}

TEST_F(UnaryTest, FailsWithDetails) {
  auto exchange = BeginUnary(Framed("hello"));
  call_->Fail({absl::NotFoundError("no such thing"), "details", {{"key", "value"}}});
  EXPECT_EQ(exchange->answer().Field("grpc-status"), "5");
  EXPECT_EQ(exchange->answer().Field("grpc-message"), "no such thing");
  EXPECT_EQ(exchange->answer().Field("key"), "value");
}

TEST_F(UnaryTest, NeedsAMessage) {
  auto exchange = BeginUnary("");
  EXPECT_EQ(exchange->answer().Field("grpc-status"), "3");
  EXPECT_EQ(exchange->answer().Field("grpc-message"), "the call brought no test.Request");
  EXPECT_THAT(no_message_, ElementsAre(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(requests_, IsEmpty());
  // An empty message is one.
  BeginUnary(Framed(""));
  EXPECT_THAT(requests_, ElementsAre(""));
}

TEST_F(UnaryTest, TakesOnlyOneMessage) {
  auto exchange = BeginUnary(Framed("one") + Framed("two"));
  EXPECT_EQ(exchange->answer().Field("grpc-status"), "3");
  EXPECT_THAT(exchange->answer().Field("grpc-message"), HasSubstr("more than one test.Request"));
  EXPECT_THAT(requests_, IsEmpty());
  EXPECT_THAT(no_message_, IsEmpty());
}

TEST_F(UnaryTest, TellsHowACallWithoutAMessageEnded) {
  BeginAt(FakeExchange::Head(kUnary))->Break();
  EXPECT_THAT(no_message_, ElementsAre(absl::StatusCode::kCancelled));
  auto late = BeginAt(FakeExchange::Head(kUnary, {{"grpc-timeout", "1S"}}));
  loop_.Advance(absl::Seconds(1));
  EXPECT_THAT(no_message_, ElementsAre(absl::StatusCode::kCancelled, absl::StatusCode::kDeadlineExceeded));
  EXPECT_EQ(late->answer().Field("grpc-status"), "4");
}

TEST_F(UnaryTest, TellsThatItsMessageWasRefused) {
  auto exchange = BeginAt(FakeExchange::Head(kUnary));
  exchange->SendBodyPart(PrefixOf((1 << 20) + 1));
  EXPECT_EQ(exchange->answer().Field("grpc-status"), "8");
  EXPECT_THAT(no_message_, ElementsAre(absl::StatusCode::kResourceExhausted));
}

TEST_F(UnaryTest, RaisesTheCancellation) {
  auto exchange = BeginUnary(Framed("hello"));
  EXPECT_FALSE(call_->cancellation()->cancelled());
  exchange->Break();
  EXPECT_TRUE(call_->cancellation()->cancelled());
  call_->Respond(OwnedBytes("nobody reads this"));
  auto late = BeginUnary(Framed("hello"), {{"grpc-timeout", "1S"}});
  loop_.Advance(absl::Seconds(1));
  EXPECT_TRUE(call_->cancellation()->cancelled());
}

TEST_F(UnaryTest, EndsACallThatIsDropped) {
  auto exchange = BeginUnary(Framed("hello"));
  call_ = nullptr;
  EXPECT_EQ(exchange->answer().Field("grpc-status"), "13");
}

TEST_F(UnaryTest, EndsACallWhoseFunctionThrows) {
  throw_ = true;
  auto exchange = BeginUnary(Framed("hello"));
  EXPECT_EQ(exchange->answer().Field("grpc-status"), "13");
  EXPECT_THAT(exchange->answer().Field("grpc-message"), testing::Not(HasSubstr("secret")));
  // What it does later with the call is too late.
  call_->Respond(OwnedBytes("answer"));
  EXPECT_EQ(exchange->answer().body, "");
}

}  // namespace
}  // namespace saccade::server
