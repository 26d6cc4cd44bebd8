#include "server/catalog/load_queue.h"

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/core/fake_clock.h"
#include "server/core/inline_passes.h"
#include "server/core/retry_hint.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

class LoadQueueTest : public testing::Test {
 protected:
  CallHead Call(const std::string& model, absl::Duration deadline = absl::InfiniteDuration(),
                const std::string& client = "ipv4:10.0.0.7") {
    CallHead call;
    call.model = model;
    call.client = client;
    call.deadline = clock_.Now() + deadline;
    return call;
  }
  // The statuses of the requests that have ended, in order.
  LoadQueue::Resume Resume() {
    return [this](absl::Status status) { ended_.push_back(std::move(status)); };
  }

  FakeClock clock_;
  int ordered_ = 0;
  LoadQueue queue_{{.max_waiting_per_model = 2, .max_waiting = 3}, &clock_, [this] { ++ordered_; }};
  std::vector<absl::Status> ended_;
};

TEST_F(LoadQueueTest, TheModelThatMostClientsAskForIsNext) {
  EXPECT_EQ(queue_.MostWanted(), std::nullopt);
  queue_.Await(Call("a"), Resume());
  queue_.Await(Call("b"), Resume());
  EXPECT_EQ(queue_.MostWanted(), "a") << "it was ordered first";
  queue_.Await(Call("b", absl::InfiniteDuration(), "ipv4:10.0.0.8"), Resume());
  EXPECT_EQ(queue_.MostWanted(), "b");
  EXPECT_EQ(ordered_, 3);
  queue_.Loaded("b", absl::Seconds(1));
  EXPECT_EQ(ended_.size(), 2);
  EXPECT_EQ(queue_.MostWanted(), "a");
  EXPECT_EQ(queue_.waiting(), 1);
}

TEST_F(LoadQueueTest, AmongEqualsAModelThatRequestsWaitForIsNext) {
  queue_.Await(Call("a", -absl::Seconds(1)), Resume());
  EXPECT_EQ(ended_.size(), 1) << "too late";
  EXPECT_EQ(queue_.MostWanted(), "a") << "it is loaded for the next requests";
  queue_.Await(Call("b", absl::InfiniteDuration(), "ipv4:10.0.0.8"), Resume());
  EXPECT_EQ(queue_.MostWanted(), "b");
}

TEST_F(LoadQueueTest, AModelThatNobodyAsksForAnyMoreIsForgotten) {
  for (int i = 0; i < 300; ++i) queue_.Await(Call(absl::StrCat("m", i), -absl::Seconds(1)), Resume());
  EXPECT_EQ(queue_.WantedModels().size(), 300);
  queue_.Await(Call("waits"), Resume());
  clock_.Advance(absl::Seconds(9));
  queue_.Await(Call("m7", -absl::Seconds(1)), Resume());
  queue_.Sweep();
  EXPECT_EQ(queue_.WantedModels().size(), 301);
  clock_.Advance(absl::Seconds(2));
  queue_.Sweep();
  EXPECT_THAT(queue_.WantedModels(), ::testing::ElementsAre("m7", "waits"));
}

TEST_F(LoadQueueTest, AClientCountsOnceForAModel) {
  queue_.Await(Call("a"), Resume());
  for (int i = 0; i < 100; ++i) queue_.Await(Call("b"), Resume());
  EXPECT_GT(ended_.size(), 90) << "most were rejected";
  EXPECT_EQ(queue_.MostWanted(), "a");
  for (const char* client : {"ipv4:10.0.0.8", "ipv4:10.0.0.9"})
    queue_.Await(Call("a", absl::InfiniteDuration(), client), Resume());
  for (int i = 0; i < 100; ++i) queue_.Await(Call("b"), Resume());
  EXPECT_EQ(queue_.MostWanted(), "a");
}

TEST_F(LoadQueueTest, TheNumberOfClientsThatAreCountedIsBounded) {
  const auto ask = [this](const std::string& model, int clients) {
    for (int i = 0; i < clients; ++i)
      queue_.Await(Call(model, absl::InfiniteDuration(), absl::StrCat("token:", i)), Resume());
  };
  ask("a", 63);
  ask("b", 64);
  EXPECT_EQ(queue_.MostWanted(), "b");
  ask("a", 100);
  EXPECT_EQ(queue_.MostWanted(), "a") << "both have 64, and it was ordered first";
}

TEST_F(LoadQueueTest, TheThreadThatLoadsComputesNoPassOfARequest) {
  std::vector<InlinePasses> passes;
  for (int i = 0; i < 2; ++i)
    queue_.Await(Call("a"), [&](const absl::Status&) { passes.push_back(LimitInlinePasses::Current()); });
  queue_.Loaded("a", absl::Seconds(1));
  EXPECT_THAT(passes, testing::ElementsAre(InlinePasses::kNone, InlinePasses::kNone));
}

TEST_F(LoadQueueTest, TheNumberOfRequestsThatWaitIsBounded) {
  for (const char* model : {"a", "a", "a", "b", "c"}) queue_.Await(Call(model), Resume());
  ASSERT_EQ(ended_.size(), 2) << "the third for a, and c, which is the fourth of all";
  for (const absl::Status& refused : ended_) {
    EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_TRUE(RetryAfter(refused).has_value());
  }
  EXPECT_EQ(queue_.waiting(), 3);
}

// Four requests may wait for a model, and six in all.
TEST_F(LoadQueueTest, BesideOthersAClientHasHalfOfThePlaces) {
  LoadQueue queue({.max_waiting_per_model = 4, .max_waiting = 6}, &clock_, [] {});
  const auto ask = [&](const std::string& model, const std::string& client) {
    const size_t ended = ended_.size();
    queue.Await(Call(model, absl::InfiniteDuration(), client), Resume());
    return ended_.size() > ended ? ended_.back().code() : absl::StatusCode::kOk;
  };
  EXPECT_EQ(ask("a", "token:1"), absl::StatusCode::kOk);
  EXPECT_EQ(ask("a", "token:2"), absl::StatusCode::kOk);
  EXPECT_EQ(ask("a", "token:1"), absl::StatusCode::kOk);
  EXPECT_EQ(ask("a", "token:1"), absl::StatusCode::kResourceExhausted) << "it has half for this model";
  EXPECT_THAT(std::string(ended_.back().message()), HasSubstr("2 requests of the client wait for model 'a'"));
  EXPECT_TRUE(RetryAfter(ended_.back()).has_value());
  EXPECT_EQ(ask("b", "token:1"), absl::StatusCode::kOk);
  EXPECT_EQ(ask("c", "token:1"), absl::StatusCode::kResourceExhausted) << "it has half of all";
  EXPECT_EQ(ask("a", "token:2"), absl::StatusCode::kOk);
  EXPECT_EQ(queue.waiting(), 5);
}

TEST_F(LoadQueueTest, AClientThatIsAloneHasAllPlaces) {
  for (int i = 0; i < 2; ++i) queue_.Await(Call("a"), Resume());
  queue_.Await(Call("b"), Resume());
  EXPECT_TRUE(ended_.empty());
  EXPECT_EQ(queue_.waiting(), 3);
}

TEST_F(LoadQueueTest, ARequestThatDoesNotWaitTakesNoPlace) {
  queue_.Want(Call("a"));
  queue_.Await(Call("b"), Resume());
  queue_.Want(Call("a", absl::InfiniteDuration(), "ipv4:10.0.0.8"));
  EXPECT_EQ(queue_.MostWanted(), "a") << "two clients have asked for it";
  EXPECT_EQ(ordered_, 3);
  EXPECT_EQ(queue_.waiting(), 1);
  queue_.Failed("a", absl::InternalError("it failed"));
  queue_.Want(Call("a"));
  EXPECT_EQ(queue_.MostWanted(), "b") << "it is not loaded again at once";
  EXPECT_EQ(ordered_, 3);
}

// What ends the wait of several requests, one of which throws.
TEST_F(LoadQueueTest, ARequestThatThrowsKeepsNoOtherWaiting) {
  LoadQueue queue({}, &clock_, [] {});
  const auto wait = [&] {
    ended_.clear();
    queue.Await(Call("a"), Resume());
    queue.Await(Call("a"), [](const absl::Status&) { throw std::runtime_error("no memory"); });
    queue.Await(Call("a"), Resume());
    ASSERT_EQ(queue.waiting(), 3);
  };
  wait();
  queue.Loaded("a", absl::Seconds(1));
  EXPECT_EQ(ended_.size(), 2);
  wait();
  queue.Failed("a", absl::InternalError("it failed"));
  EXPECT_EQ(ended_.size(), 2);
  queue.Forget("a", absl::UnavailableError("unloaded"));
  wait();
  queue.Forget("a", absl::UnavailableError("unloaded"));
  EXPECT_EQ(ended_.size(), 2);
  wait();
  clock_.Advance(absl::Minutes(1));
  queue.Sweep();
  EXPECT_EQ(ended_.size(), 2);
  wait();
  queue.Close(absl::UnavailableError("the end"));
  EXPECT_EQ(ended_.size(), 2);
}

TEST_F(LoadQueueTest, ARequestThatWouldBeLateIsRejectedAndItsModelIsLoaded) {
  queue_.Await(Call("a"), Resume());
  queue_.Loaded("a", absl::Seconds(2));
  ended_.clear();
  queue_.Await(Call("b", absl::Seconds(1)), Resume());
  ASSERT_EQ(ended_.size(), 1) << "a load takes two seconds, as far as is known";
  EXPECT_EQ(ended_[0].code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(RetryAfter(ended_[0]), absl::Seconds(2));
  EXPECT_EQ(queue_.MostWanted(), "b");
  queue_.Await(Call("c", absl::Seconds(3)), Resume());
  EXPECT_EQ(ended_.size(), 2) << "b comes first: four seconds";
  queue_.Await(Call("c", absl::Seconds(5)), Resume());
  EXPECT_EQ(ended_.size(), 2);
}

TEST_F(LoadQueueTest, ALoadThatRunsCountsWithTheTimeThatIsLeft) {
  queue_.Await(Call("a"), Resume());
  queue_.Loaded("a", absl::Seconds(10));
  queue_.Await(Call("a"), Resume());
  queue_.Begin("a");
  clock_.Advance(absl::Seconds(9));
  ended_.clear();
  queue_.Await(Call("a", absl::Milliseconds(500)), Resume());
  ASSERT_EQ(ended_.size(), 1);
  EXPECT_EQ(RetryAfter(ended_[0]), absl::Seconds(1));
  queue_.Await(Call("a", absl::Seconds(2)), Resume());
  EXPECT_EQ(ended_.size(), 1) << "a second is left";
  queue_.Await(Call("b", absl::Seconds(10)), Resume());
  ASSERT_EQ(ended_.size(), 2);
  EXPECT_EQ(RetryAfter(ended_[1]), absl::Seconds(11)) << "b's own load has not begun";
  clock_.Advance(absl::Seconds(5));
  queue_.Await(Call("b", absl::Seconds(9)), Resume());
  ASSERT_EQ(ended_.size(), 3);
  EXPECT_EQ(RetryAfter(ended_[2]), absl::Seconds(10)) << "a takes longer than expected, and b no less for it";
}

TEST_F(LoadQueueTest, ALoadThatHasEndedRunsNoMore) {
  queue_.Await(Call("a"), Resume());
  queue_.Begin("a");
  clock_.Advance(absl::Seconds(10));
  queue_.Loaded("a", absl::Seconds(10));
  ended_.clear();
  queue_.Await(Call("a", absl::Seconds(9)), Resume());
  ASSERT_EQ(ended_.size(), 1);
  EXPECT_EQ(RetryAfter(ended_[0]), absl::Seconds(10));
}

TEST_F(LoadQueueTest, AModelWhoseLoadRunsIsNotChosen) {
  for (const char* model : {"a", "b"}) queue_.Await(Call(model), Resume());
  queue_.Begin("a");
  EXPECT_EQ(queue_.MostWanted(), "b");
  queue_.Begin("b");
  EXPECT_EQ(queue_.MostWanted(), std::nullopt);
  EXPECT_THAT(queue_.WantedModels(), testing::ElementsAre("a", "b"));
  queue_.End("a");
  EXPECT_EQ(queue_.MostWanted(), "a") << "whoever had asked for that load, requests still wait";
  queue_.Failed("b", absl::InternalError("it failed"));
  EXPECT_EQ(queue_.MostWanted(), "a");
  EXPECT_THAT(queue_.WantedModels(), testing::ElementsAre("a"));
}

// Two loads run at the same time. It is known of a, b and c that they take 10, 4 and 6 seconds, and of m that
// it takes 2 and runs alone.
class TwoLoadsTest : public LoadQueueTest {
 protected:
  TwoLoadsTest() {
    two_.Begin("m", /*alone=*/true);
    two_.Loaded("m", absl::Seconds(2));
    two_.Loaded("a", absl::Seconds(10));
    two_.Loaded("b", absl::Seconds(4));
    two_.Loaded("c", absl::Seconds(6));
  }
  // When a request that has no time is told to try again.
  absl::Duration Wait(const std::string& model) {
    std::optional<absl::Duration> after;
    two_.Await(Call(model, absl::ZeroDuration()),
               [&](const absl::Status& refused) { after = RetryAfter(refused); });
    return after.value_or(absl::InfiniteDuration());
  }

  LoadQueue two_{{.max_loads = 2}, &clock_, [] {}};
};

TEST_F(TwoLoadsTest, TheThreadsShareTheLoads) {
  EXPECT_EQ(Wait("a"), absl::Seconds(10));
  EXPECT_EQ(Wait("b"), absl::Seconds(4));
  EXPECT_EQ(Wait("c"), absl::Seconds(10)) << "after b, beside a";
  EXPECT_EQ(Wait("a"), absl::Seconds(10)) << "it still comes first";
}

TEST_F(TwoLoadsTest, TheOneThatMostClientsAskForComesFirst) {
  for (const char* model : {"a", "b", "c"}) Wait(model);
  two_.Await(Call("c", absl::InfiniteDuration(), "ipv4:10.0.0.8"), Resume());
  EXPECT_EQ(Wait("c"), absl::Seconds(6)) << "two clients have asked for it";
  EXPECT_EQ(Wait("b"), absl::Seconds(10)) << "after c, beside a";
}

TEST_F(TwoLoadsTest, LoadsThatRunCountWhoeverAskedForThem) {
  two_.Begin("a");
  two_.Begin("b");
  clock_.Advance(absl::Seconds(3));
  EXPECT_EQ(Wait("c"), absl::Seconds(7)) << "b has one second left, and a seven";
  EXPECT_EQ(Wait("a"), absl::Seconds(7));
  two_.End("b");
  EXPECT_EQ(Wait("c"), absl::Seconds(6));
}

TEST_F(TwoLoadsTest, ALoadThatRunsAloneSharesNothing) {
  EXPECT_EQ(Wait("a"), absl::Seconds(10));
  EXPECT_EQ(Wait("m"), absl::Seconds(12)) << "it waits until no load runs";
  EXPECT_EQ(Wait("b"), absl::Seconds(16)) << "and the next ones wait for it";
  EXPECT_EQ(Wait("c"), absl::Seconds(18)) << "beside b";
}

TEST_F(TwoLoadsTest, ALoadThatRunsAloneHoldsUpTheOthers) {
  two_.Begin("m", /*alone=*/true);
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(Wait("b"), absl::Seconds(5));
  EXPECT_EQ(Wait("c"), absl::Seconds(7));
}

TEST_F(TwoLoadsTest, WhatIsLeftOfTheStartComesFirst) {
  two_.ListAtStart({"a", "b", "c", "hosted"});
  two_.EndAtStart("hosted");
  EXPECT_EQ(Wait("m"), absl::Seconds(12)) << "a, and beside it b and c";
  two_.Begin("a", /*alone=*/true);
  EXPECT_EQ(Wait("m"), absl::Seconds(22)) << "what follows is expected to run alone, too";
  clock_.Advance(absl::Seconds(10));
  two_.Loaded("a", absl::Seconds(10));
  EXPECT_EQ(Wait("m"), absl::Seconds(12));
  two_.Begin("b");
  two_.End("b");
  two_.EndAtStart("c");
  EXPECT_EQ(Wait("m"), absl::Seconds(2));
  EXPECT_EQ(Wait("a"), absl::Seconds(12)) << "only m is loaded before it";
}

TEST_F(TwoLoadsTest, AModelThatIsNotKnownIsExpectedToBeLikeTheLastOne) {
  LoadQueue queue({.max_loads = 2}, &clock_, [] {});
  queue.Begin("x", /*alone=*/true);
  queue.Loaded("x", absl::Seconds(2));
  std::vector<std::optional<absl::Duration>> after;
  const auto ask = [&](const std::string& model) {
    queue.Await(Call(model, absl::ZeroDuration()),
                [&](const absl::Status& refused) { after.push_back(RetryAfter(refused)); });
  };
  for (const char* model : {"y", "z"}) ask(model);
  EXPECT_THAT(after, testing::ElementsAre(absl::Seconds(2), absl::Seconds(4))) << "each alone";
  queue.Begin("y");
  queue.Loaded("y", absl::Seconds(2));
  after.clear();
  for (const char* model : {"z", "v"}) ask(model);
  ASSERT_EQ(after.size(), 2);
  EXPECT_EQ(after[0], after[1]) << "beside each other";
}

TEST_F(LoadQueueTest, AFailedLoadAnswersAtOnceUntilItsPauseIsOver) {
  queue_.Await(Call("a"), Resume());
  queue_.Failed("a", absl::InvalidArgumentError("the file is cut off"));
  ASSERT_EQ(ended_.size(), 1);
  EXPECT_EQ(ended_[0].code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(RetryAfter(ended_[0]), absl::Seconds(1));
  queue_.Await(Call("a"), Resume());
  ASSERT_EQ(ended_.size(), 2);
  EXPECT_THAT(std::string(ended_[1].message()), HasSubstr("the file is cut off; a request after 1000 ms"));
  EXPECT_EQ(queue_.MostWanted(), std::nullopt);
  EXPECT_EQ(ordered_, 1) << "the second request wakes nobody";
  clock_.Advance(absl::Seconds(1));
  queue_.Await(Call("a"), Resume());
  EXPECT_EQ(ended_.size(), 2);
  queue_.Failed("a", absl::InvalidArgumentError("the file is cut off"));
  EXPECT_EQ(RetryAfter(ended_[2]), absl::Seconds(2)) << "twice as long as before";
}

TEST_F(LoadQueueTest, RequestsEndWithTheirDeadlineOrCancellation) {
  CallHead cancelled = Call("a");
  cancelled.cancellation = std::make_shared<Cancellation>();
  queue_.Await(cancelled, Resume());
  queue_.Await(Call("a", absl::Seconds(1)), Resume());
  queue_.Await(Call("b"), Resume());
  queue_.Sweep();
  EXPECT_TRUE(ended_.empty());
  cancelled.cancellation->Cancel();
  queue_.Sweep();
  clock_.Advance(absl::Seconds(1));
  queue_.Sweep();
  ASSERT_EQ(ended_.size(), 2);
  EXPECT_EQ(ended_[0].code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(ended_[1].code(), absl::StatusCode::kDeadlineExceeded);
  clock_.Advance(absl::Seconds(60));
  queue_.Sweep();
  EXPECT_EQ(ended_.size(), 3) << "without a deadline, a request waits for a minute";
  EXPECT_EQ(queue_.waiting(), 0);
}

TEST_F(LoadQueueTest, AfterTheEndNothingWaits) {
  queue_.Await(Call("a"), Resume());
  queue_.Close(absl::UnavailableError("the end"));
  queue_.Await(Call("b"), Resume());
  ASSERT_EQ(ended_.size(), 2);
  EXPECT_EQ(ended_[0].message(), "the end");
  EXPECT_EQ(ended_[1].message(), "the end");
}

}  // namespace
}  // namespace saccade::server
