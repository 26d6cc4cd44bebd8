#include "server/protocols/ordered_stream.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/protocols/testing/fake_call.h"

namespace saccade::server {
namespace {

using testing::FakeCall;
using testing::InPieces;

// Keeps the requests until the test answers them.
class EchoStream final : public OrderedStream {
 public:
  explicit EchoStream(Bounds bounds) : OrderedStream(bounds) {}

  struct Taken {
    std::shared_ptr<Slot> slot;
    BytePieces message;
  };

  // Answers request `i` with `answer`.
  void Answer(size_t i, BytePieces answer, bool keeps_request = false) {
    Send(taken.at(i).slot, std::move(answer), keeps_request);
  }
  void Answer(size_t i, const std::string& answer) { Answer(i, InPieces(answer, 100)); }
  void Fail(size_t i, const absl::Status& status) {
    Stop({.status = status});
    Answer(i, "dropped");
  }
  bool IsCancelled(size_t i) const { return taken.at(i).slot->cancellation->cancelled(); }

  std::vector<Taken> taken;

 private:
  void Take(const std::shared_ptr<Slot>& slot, BytePieces message) override {
    EXPECT_EQ(slot->index, static_cast<int64_t>(taken.size()));
    taken.push_back({slot, std::move(message)});
  }
};

struct Stream {
  explicit Stream(OrderedStream::Bounds bounds = {.max_requests = 100, .max_bytes = 1 << 20})
      : handler(std::make_shared<EchoStream>(bounds)) {
    call.Begin(handler);
  }
  void Deliver(int count) {
    for (int i = 0; i < count; ++i) call.Deliver(absl::StrCat("request ", i));
  }

  FakeCall call;
  const std::shared_ptr<EchoStream> handler;
};

TEST(OrderedStreamTest, AnswersAreSentInTheOrderOfTheRequests) {
  Stream stream;
  stream.Deliver(3);
  stream.handler->Answer(2, "c");
  stream.handler->Answer(1, "b");
  EXPECT_FALSE(stream.call.is_sending());
  stream.handler->Answer(0, "a");
  EXPECT_EQ(stream.call.Written(), "a");
  EXPECT_EQ(stream.call.Written(), "b");
  EXPECT_EQ(stream.call.Written(), "c");
  EXPECT_FALSE(stream.call.is_finished());
  stream.call.HalfClose();
  EXPECT_TRUE(stream.call.end().status.ok());
  stream.call.Done();
}

TEST(OrderedStreamTest, TheEndFollowsTheLastAnswer) {
  Stream stream;
  stream.Deliver(2);
  stream.call.HalfClose();
  EXPECT_FALSE(stream.call.is_finished());
  stream.handler->Answer(0, "a");
  EXPECT_EQ(stream.call.Written(), "a");
  EXPECT_FALSE(stream.call.is_finished());
  stream.handler->Answer(1, "b");
  EXPECT_TRUE(stream.call.is_sending());
  EXPECT_TRUE(stream.call.end().status.ok()) << "the end need not wait for the client to read the answer";
  stream.call.Done();
}

TEST(OrderedStreamTest, AnEmptyStreamEnds) {
  Stream stream;
  stream.call.HalfClose();
  EXPECT_TRUE(stream.call.end().status.ok());
  stream.call.Done();
}

TEST(OrderedStreamTest, ReadsNoMoreRequestsThanItsBound) {
  Stream stream({.max_requests = 2, .max_bytes = 1 << 20});
  stream.Deliver(2);
  EXPECT_FALSE(stream.call.wants_message());
  stream.handler->Answer(1, "b");
  stream.handler->Answer(0, "a");
  EXPECT_FALSE(stream.call.wants_message()) << "an answer counts until it is sent";
  stream.call.Written();
  EXPECT_TRUE(stream.call.wants_message());
  stream.call.Written();
  stream.call.HalfClose();
  stream.call.Done();
}

TEST(OrderedStreamTest, ReadsNoMoreBytesThanItsBound) {
  Stream stream({.max_requests = 100, .max_bytes = 1000});
  stream.call.Deliver(std::string(600, 'a'));
  EXPECT_TRUE(stream.call.wants_message());
  stream.call.Deliver(std::string(600, 'b'));
  EXPECT_FALSE(stream.call.wants_message());
  stream.handler->Answer(0, InPieces(std::string(500, 'x'), 100));
  EXPECT_FALSE(stream.call.wants_message()) << "the answer has 500 bytes, the second request 600";
  stream.call.Written();
  EXPECT_TRUE(stream.call.wants_message());
  stream.handler->Answer(1, InPieces(std::string(900, 'x'), 100), /*keeps_request=*/true);
  stream.call.Written();
  stream.call.Deliver(std::string(999, 'c'));
  EXPECT_TRUE(stream.call.wants_message()) << "all that was sent was released";
  stream.handler->Answer(2, "");
  stream.call.Written();
  stream.call.HalfClose();
  stream.call.Done();
}

TEST(OrderedStreamTest, AKeptRequestCountsUntilItsAnswerIsSent) {
  Stream stream({.max_requests = 100, .max_bytes = 1000});
  stream.call.Deliver(std::string(600, 'a'));
  EXPECT_TRUE(stream.call.wants_message());
  stream.call.Deliver("b");
  stream.handler->Answer(1, InPieces(std::string(500, 'x'), 100));
  stream.handler->Answer(0, InPieces(std::string(500, 'x'), 100), /*keeps_request=*/true);
  stream.call.Deliver("c");
  EXPECT_FALSE(stream.call.wants_message()) << "600 kept bytes and two answers of 500";
  stream.call.Written();
  EXPECT_TRUE(stream.call.wants_message());
  stream.handler->Answer(2, "");
  stream.call.HalfClose();
  stream.call.Written();
  stream.call.Done();
}

TEST(OrderedStreamTest, ACancelledStreamEndsWhenAllRequestsAreAnswered) {
  Stream stream;
  stream.Deliver(2);
  EXPECT_FALSE(stream.handler->IsCancelled(0));
  stream.call.Cancel();
  EXPECT_TRUE(stream.handler->IsCancelled(0));
  EXPECT_TRUE(stream.handler->IsCancelled(1));
  stream.handler->Answer(1, "b");
  EXPECT_FALSE(stream.call.is_finished());
  stream.handler->Answer(0, "a");
  EXPECT_EQ(stream.call.end().status.code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE(stream.call.is_sending());
  stream.call.Done();
}

TEST(OrderedStreamTest, AnswersThatWaitAreDroppedWhenTheClientGoes) {
  Stream stream;
  stream.Deliver(3);
  const auto owner = std::make_shared<int>();
  const auto answer = [&owner] { return BytePieces("answer", owner); };
  stream.handler->Answer(0, answer());
  stream.handler->Answer(1, answer());
  EXPECT_EQ(owner.use_count(), 3);
  EXPECT_EQ(stream.call.Written(/*ok=*/false), "answer");
  EXPECT_EQ(owner.use_count(), 1) << "while the third request is still computed";
  EXPECT_TRUE(stream.handler->IsCancelled(2));
  stream.call.Cancel();
  EXPECT_FALSE(stream.call.is_finished());
  stream.handler->Answer(2, answer());
  EXPECT_EQ(stream.call.end().status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(owner.use_count(), 1);
  stream.call.Done();
}

TEST(OrderedStreamTest, AnAnswerIsKeptUntilItIsWritten) {
  Stream stream;
  stream.Deliver(1);
  const auto owner = std::make_shared<int>();
  stream.handler->Answer(0, BytePieces("answer", owner));
  EXPECT_EQ(owner.use_count(), 2);
  stream.call.Written();
  EXPECT_EQ(owner.use_count(), 1);
  stream.call.HalfClose();
  stream.call.Done();
}

TEST(OrderedStreamTest, AStatusEndsItAfterThePendingRequests) {
  Stream stream;
  stream.Deliver(2);
  stream.handler->Fail(0, absl::InvalidArgumentError("wrong"));
  EXPECT_TRUE(stream.handler->IsCancelled(1));
  EXPECT_FALSE(stream.call.is_finished());
  stream.handler->Fail(1, absl::InternalError("a later one does not count"));
  EXPECT_EQ(stream.call.end().status, absl::InvalidArgumentError("wrong"));
  stream.call.Done();
}

TEST(OrderedStreamTest, AnswersMayComeFromSeveralThreads) {
  constexpr int kThreads = 4, kRequests = 80;
  Stream stream;
  stream.Deliver(kRequests);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&stream, thread] {
      for (int i = thread; i < kRequests; i += kThreads) stream.handler->Answer(i, absl::StrCat(i));
    });
  }
  stream.call.HalfClose();
  for (int i = 0; i < kRequests; ++i) EXPECT_EQ(stream.call.Written(), absl::StrCat(i));
  EXPECT_TRUE(stream.call.end().status.ok());
  for (std::thread& thread : threads) thread.join();
  stream.call.Done();
}

TEST(OrderedStreamTest, WhatComesAfterTheEndHasNoEffect) {
  Stream stream;
  stream.call.HalfClose();
  ASSERT_TRUE(stream.call.is_finished());
  stream.call.Cancel();
  EXPECT_TRUE(stream.call.end().status.ok());
  stream.call.Done();
}

TEST(OrderedStreamTest, ACancelledCallTakesNoMoreMessages) {
  Stream stream;
  stream.Deliver(1);
  stream.call.Cancel();
  stream.call.Deliver("on its way already");
  EXPECT_EQ(stream.handler->taken.size(), 1u);
  stream.handler->Answer(0, "a");
  stream.call.Done();
}

}  // namespace
}  // namespace saccade::server
