#include "server/lifecycle/front/request_dispatcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "server/grpc/testing/fake_exchange.h"
#include "server/net/testing/manual_loop.h"

namespace saccade::server {
namespace {

// Counts what it gets.
class CountingHandler final : public ExchangeHandler {
 public:
  std::unique_ptr<ExchangeReceiver> Begin(Exchange* /*exchange*/) override {
    ++begun;
    return std::make_unique<Receiver>(this);
  }

  int begun = 0;
  std::string body;
  int complete = 0;
  int written = 0;
  int answered = 0;
  int broken = 0;
  // Whether the receivers end their exchanges when the server shuts down.
  bool ends_at_shutdown = false;
  int told_of_shutdown = 0;

 private:
  class Receiver final : public ExchangeReceiver {
   public:
    explicit Receiver(CountingHandler* to) : to_(to) {}
    void OnBody(absl::string_view bytes) override { to_->body.append(bytes.data(), bytes.size()); }
    void OnBodyEnd() override { ++to_->complete; }
    void OnWritten() override { ++to_->written; }
    bool OnShutdown() override {
      ++to_->told_of_shutdown;
      return to_->ends_at_shutdown;
    }
    void OnOver(bool was_answered) override { ++(was_answered ? to_->answered : to_->broken); }

   private:
    CountingHandler* const to_;
  };
};

class RequestDispatcherTest : public testing::Test {
 protected:
  static RequestHead Get() {
    RequestHead head;
    head.method = "GET";
    head.path = "/";
    return head;
  }
  static RequestHead Post() {
    RequestHead head = Get();
    head.method = "POST";
    head.has_body = true;
    return head;
  }

  void EndUnfinished() {
    dispatcher_.EndUnfinished();
    loop_.RunUntilIdle();
  }

  ManualLoop loop_;
  ManualLoop other_loop_;
  CountingHandler grpc_;
  CountingHandler http_;
  RequestDispatcher dispatcher_{&grpc_, &http_, {&other_loop_, &loop_}};
};

TEST_F(RequestDispatcherTest, TheContentTypeDecides) {
  FakeExchange call(&loop_, FakeExchange::Head("/a.B/C"));
  FakeExchange web_call(&loop_, FakeExchange::Head("/a.B/C", {}, "application/grpc-web+proto"));
  FakeExchange get(&loop_, Get());
  FakeExchange post(&loop_, FakeExchange::Head("/a.B/C", {}, "application/json"));
  for (FakeExchange* exchange : {&call, &web_call, &get, &post}) exchange->Begin(dispatcher_);
  EXPECT_EQ(grpc_.begun, 2);
  EXPECT_EQ(http_.begun, 2);
}

TEST_F(RequestDispatcherTest, EventsArePassedOn) {
  FakeExchange exchange(&loop_, Post());
  exchange.Begin(dispatcher_);
  exchange.SendBodyPart("ab");
  exchange.SendBodyPart("c");
  exchange.EndBody();
  exchange.SendHead(200, {});
  exchange.SendBody(BytePieces("answer", nullptr));
  exchange.End({});
  loop_.RunUntilIdle();
  EXPECT_EQ(http_.body, "abc");
  EXPECT_EQ(http_.complete, 1);
  EXPECT_GE(http_.written, 1);
  EXPECT_EQ(http_.answered, 1);
}

TEST_F(RequestDispatcherTest, IncompleteRequestsAreEnded) {
  FakeExchange upload(&loop_, Post());
  FakeExchange silent(&loop_, FakeExchange::Head("/a.B/C"));
  FakeExchange complete(&loop_, Post());
  FakeExchange get(&loop_, Get());
  for (FakeExchange* exchange : {&upload, &silent, &complete, &get}) exchange->Begin(dispatcher_);
  upload.SendBodyPart("part");
  complete.SendBodyPart("all");
  complete.EndBody();
  EndUnfinished();
  EXPECT_EQ(upload.answer().reset, ExchangeError::kRefused);
  EXPECT_EQ(silent.answer().reset, ExchangeError::kRefused);
  EXPECT_EQ(http_.broken, 1);
  EXPECT_EQ(grpc_.broken, 1);
  EXPECT_EQ(complete.answer().reset, std::nullopt) << "its response may still be computed";
  EXPECT_EQ(get.answer().reset, std::nullopt);
}

TEST_F(RequestDispatcherTest, WhatWasProcessedIsNotRefused) {
  grpc_.ends_at_shutdown = true;
  FakeExchange stream(&loop_, FakeExchange::Head("/a.B/C"));
  FakeExchange upload(&loop_, Post());
  FakeExchange complete(&loop_, FakeExchange::Head("/a.B/C"));
  for (FakeExchange* exchange : {&stream, &upload, &complete}) exchange->Begin(dispatcher_);
  complete.EndBody();
  EndUnfinished();
  EXPECT_EQ(stream.answer().reset, std::nullopt) << "its receiver ends it";
  EXPECT_EQ(upload.answer().reset, ExchangeError::kRefused);
  EXPECT_EQ(grpc_.told_of_shutdown, 1) << "a complete request is answered as always";
  EXPECT_EQ(http_.told_of_shutdown, 1);
}

TEST_F(RequestDispatcherTest, WhatIsToBeSentIsSentFirst) {
  FakeExchange stream(&loop_, FakeExchange::Head("/a.B/C"));
  stream.Begin(dispatcher_);
  stream.Stall();
  stream.SendHead(200, {});
  stream.SendBody(BytePieces("answer", nullptr));
  EndUnfinished();
  EXPECT_EQ(stream.answer().reset, std::nullopt);
  stream.Resume();
  EXPECT_EQ(stream.answer().body, "answer");
  EndUnfinished();
  EXPECT_EQ(stream.answer().reset, ExchangeError::kRefused);
}

TEST_F(RequestDispatcherTest, RequestsThatAreOverAreForgotten) {
  std::optional<FakeExchange> first(std::in_place, &loop_, Post());
  std::optional<FakeExchange> second(std::in_place, &loop_, Post());
  std::optional<FakeExchange> third(std::in_place, &loop_, Post());
  for (auto* exchange : {&first, &second, &third}) (*exchange)->Begin(dispatcher_);
  second.reset();
  EndUnfinished();
  EXPECT_EQ(first->answer().reset, ExchangeError::kRefused);
  EXPECT_EQ(third->answer().reset, ExchangeError::kRefused);
  third.reset();
  first.reset();
  EndUnfinished();
  EXPECT_EQ(http_.broken, 3);
}

}  // namespace
}  // namespace saccade::server
