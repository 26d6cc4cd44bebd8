#include "server/protocols/ordered_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "server/grpc/testing/fake_ledger.h"
#include "server/protocols/input_method.h"
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
  // Forgets request `i` without an answer.
  void Drop(size_t i) { taken.at(i).slot = nullptr; }

  std::vector<Taken> taken;

 private:
  void Take(const std::shared_ptr<Slot>& slot, BytePieces message) override {
    EXPECT_EQ(slot->index, static_cast<int64_t>(taken.size()));
    taken.push_back({slot, std::move(message)});
  }
  void Reject(const std::shared_ptr<Slot>& /*slot*/, const BytePieces& /*message*/,
              const absl::Status& why) override {
    ADD_FAILURE() << "there is no pool: " << why;
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

// Takes requests on a pool, and tells on which thread.
class PoolStream final : public OrderedStream {
 public:
  explicit PoolStream(WorkPool* pool, ByteLedger* ledger = nullptr)
      : OrderedStream({.max_requests = 9, .max_bytes = 1 << 30}, {pool, ledger}) {}

  std::vector<std::thread::id> taken_on;
  bool throws = false;

 private:
  void Take(const std::shared_ptr<Slot>& slot, BytePieces message) override {
    taken_on.push_back(std::this_thread::get_id());
    if (throws) throw std::bad_alloc();
    Send(slot, InPieces(absl::StrCat(message.size()), 100));
  }
  void Reject(const std::shared_ptr<Slot>& slot, const BytePieces& message,
              const absl::Status& why) override {
    Send(slot, InPieces(absl::StrCat(message.size(), " bytes: ", why.message()), 100));
  }
};

const std::string kLarge(kMaxBytesParsedHere + 1, 'x');

TEST(OrderedStreamTest, LargeRequestsAreTakenOnThePoolInOrder) {
  WorkPool pool(2, 10);
  FakeCall call;
  const auto stream = std::make_shared<PoolStream>(&pool);
  call.Begin(stream);
  for (int i = 0; i < 3; ++i) {
    call.Deliver(kLarge);
    EXPECT_EQ(call.Written(), absl::StrCat(kLarge.size()));
    call.AwaitRead();
    call.Deliver("small");
    EXPECT_EQ(call.Written(), "5");
  }
  ASSERT_EQ(stream->taken_on.size(), 6);
  for (int i = 0; i < 6; i += 2) {
    EXPECT_NE(stream->taken_on[i], std::this_thread::get_id());
    EXPECT_EQ(stream->taken_on[i + 1], std::this_thread::get_id());
  }
  call.HalfClose();
  EXPECT_TRUE(call.end().status.ok());
  call.Done();
}

TEST(OrderedStreamTest, AFullPoolRejectsTheRequestAlone) {
  WorkPool full(0, 0);
  FakeCall call;
  call.Begin(std::make_shared<PoolStream>(&full));
  call.Deliver(kLarge);
  EXPECT_THAT(call.Written(),
              ::testing::HasSubstr(absl::StrCat(kLarge.size(), " bytes: too many large messages")));
  call.Deliver("small");
  EXPECT_EQ(call.Written(), "5");
  call.HalfClose();
  EXPECT_TRUE(call.end().status.ok());
  call.Done();
}

TEST(OrderedStreamTest, WhatWaitsForThePoolIsNotTakenWhenTheClientGoes) {
  WorkPool pool(1, 10);
  absl::Notification go;
  ASSERT_TRUE(pool.Submit("other", [&go] { go.WaitForNotification(); }));
  FakeCall call;
  const auto stream = std::make_shared<PoolStream>(&pool);
  call.Begin(stream);
  call.Deliver(kLarge);
  call.Cancel();
  EXPECT_FALSE(call.is_finished()) << "its request waits for the pool";
  go.Notify();
  EXPECT_EQ(call.end().status.code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(stream->taken_on.empty());
  call.Done();
}

TEST(OrderedStreamTest, AnswersThatWaitAreCharged) {
  FakeLedger ledger(7);
  FakeCall call;
  call.Begin(std::make_shared<PoolStream>(nullptr, &ledger));
  for (int i = 0; i < 8; ++i) call.Deliver("small");
  EXPECT_EQ(ledger.charged(), 7) << "each answer that waits has one byte";
  EXPECT_EQ(call.Written(), "5");
  call.Deliver("small");
  EXPECT_EQ(call.end().status.code(), absl::StatusCode::kResourceExhausted);
  call.Done();
  EXPECT_EQ(ledger.charged(), 0);
}

TEST(OrderedStreamTest, AnExceptionEndsIt) {
  WorkPool pool(1, 10);
  for (const std::string& message : {kLarge, std::string("small")}) {
    FakeCall call;
    const auto stream = std::make_shared<PoolStream>(&pool);
    stream->throws = true;
    call.Begin(stream);
    call.Deliver(message);
    EXPECT_EQ(call.end().status.code(), absl::StatusCode::kInternal);
    call.Done();
  }
}

TEST(OrderedStreamTest, ARequestThatIsDroppedEndsIt) {
  Stream stream;
  stream.Deliver(3);
  stream.handler->Answer(0, "a");
  stream.handler->Drop(0);
  EXPECT_FALSE(stream.handler->IsCancelled(2)) << "the dropped request was answered";
  stream.handler->Drop(1);
  EXPECT_TRUE(stream.handler->IsCancelled(2));
  EXPECT_FALSE(stream.call.is_finished()) << "the last request is still computed";
  stream.handler->Answer(2, "c");
  ASSERT_TRUE(stream.call.is_finished());
  EXPECT_EQ(stream.call.end().status.code(), absl::StatusCode::kInternal);
  stream.call.Done();
}

// Has no memory to charge an answer.
class BrokenLedger final : public ByteLedger {
 public:
  absl::StatusOr<ByteCharge> Charge(absl::string_view /*client*/, int64_t /*bytes*/) override {
    throw std::bad_alloc();
  }

 private:
  void Return(absl::string_view /*client*/, int64_t /*bytes*/) override {}
};

TEST(OrderedStreamTest, AnAnswerThatCannotBeChargedEndsIt) {
  BrokenLedger ledger;
  FakeCall call;
  call.Begin(std::make_shared<PoolStream>(nullptr, &ledger));
  call.Deliver("sent at once, so it is not charged");
  call.Deliver("waits for the first");
  ASSERT_TRUE(call.is_finished());
  EXPECT_EQ(call.end().status.code(), absl::StatusCode::kInternal);
  call.Done();
}

TEST(OrderedStreamTest, AnEmptyStreamEnds) {
  Stream stream;
  stream.call.HalfClose();
  EXPECT_TRUE(stream.call.end().status.ok());
  stream.call.Done();
}

TEST(OrderedStreamTest, AShutdownEndsItAfterTheAnswers) {
  const absl::Status status = absl::UnavailableError("the server is shutting down");
  Stream stream;
  stream.Deliver(2);
  stream.handler->Answer(0, "a");
  EXPECT_TRUE(stream.call.ShutDown({.status = status}));
  EXPECT_FALSE(stream.handler->IsCancelled(1));
  EXPECT_EQ(stream.call.Written(), "a");
  EXPECT_FALSE(stream.call.is_finished());
  // The message that was asked for before may still come.
  stream.Deliver(1);
  EXPECT_FALSE(stream.call.wants_message());
  stream.handler->Answer(1, "b");
  EXPECT_EQ(stream.call.Written(), "b");
  EXPECT_FALSE(stream.call.is_finished());
  stream.handler->Answer(2, "refused");
  EXPECT_TRUE(stream.call.is_sending());
  EXPECT_EQ(stream.call.end().status, status);
  stream.call.Done();
}

TEST(OrderedStreamTest, AShutdownEndsAnIdleStreamAtOnce) {
  const absl::Status status = absl::UnavailableError("the server is shutting down");
  Stream stream;
  stream.Deliver(1);
  stream.handler->Answer(0, "a");
  stream.call.Written();
  EXPECT_TRUE(stream.call.ShutDown({.status = status}));
  EXPECT_EQ(stream.call.end().status, status);
  stream.call.Done();
}

TEST(OrderedStreamTest, AShutdownLeavesAStreamThatItsClientEnded) {
  Stream stream;
  stream.Deliver(1);
  stream.call.HalfClose();
  EXPECT_TRUE(stream.call.ShutDown({.status = absl::UnavailableError("the server is shutting down")}));
  stream.handler->Answer(0, "a");
  EXPECT_TRUE(stream.call.end().status.ok()) << "everything is answered";
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
