#include "server/capture/event_sink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "server/core/fake_clock.h"

namespace saccade::server {
namespace {

class EventSinkTest : public ::testing::Test {
 protected:
  EventSink& Start() {
    EventSink::Hooks hooks;
    hooks.send = [this](const CloudEvent& event, const std::function<bool()>& given_up) -> absl::Status {
      const absl::MutexLock lock(&mutex_);
      for (const auto& [name, value] : event.headers) {
        if (name == "ce-id") ids_.insert(value);
      }
      ++tried_;
      // A sink that does not respond.
      while (hangs_) {
        mutex_.Unlock();
        const bool ends = given_up();
        mutex_.Lock();
        if (ends) return absl::CancelledError("given up");
      }
      return answer_;
    };
    hooks.count = [this](EventFate fate, int64_t events) {
      const absl::MutexLock lock(&mutex_);
      fates_[fate] += events;
    };
    hooks.warn = [this](const std::string& why) {
      const absl::MutexLock lock(&mutex_);
      warnings_.push_back(why);
    };
    sink_ = std::make_unique<EventSink>(options_, std::move(hooks), &clock_);
    return *sink_;
  }
  void Push(size_t bytes = 10) {
    CapturedCall call;
    call.transport = "grpc";
    call.model = "m";
    call.request = std::string(bytes, 'x');
    sink_->Push(std::move(call));
  }
  int64_t AwaitFate(EventFate fate, int64_t min) {
    const auto came = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return fates_[fate] >= min; };
    const absl::MutexLock lock(&mutex_, absl::Condition(&came));
    return fates_[fate];
  }
  void AwaitTries(int count) {
    const auto came = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return tried_ >= count; };
    const absl::MutexLock lock(&mutex_, absl::Condition(&came));
  }

  FakeClock clock_;
  CaptureOptions options_;
  absl::Mutex mutex_;
  bool hangs_ ABSL_GUARDED_BY(mutex_) = false;
  int tried_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status answer_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> ids_ ABSL_GUARDED_BY(mutex_);
  std::map<EventFate, int64_t> fates_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> warnings_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<EventSink> sink_;
};

TEST_F(EventSinkTest, EventsOfACallShareAnIdOfTheirOwn) {
  Start();
  Push();
  Push();
  EXPECT_EQ(AwaitFate(EventFate::kSent, 4), 4);
  const absl::MutexLock lock(&mutex_);
  ASSERT_EQ(ids_.size(), 2);
  EXPECT_THAT(*ids_.begin(),
              ::testing::MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
}

TEST_F(EventSinkTest, ASinkThatDoesNotRespondFillsTheQueueAndNoMore) {
  options_.queue_bytes = 5000;
  {
    const absl::MutexLock lock(&mutex_);
    hangs_ = true;
  }
  Start();
  Push(1000);
  AwaitTries(1);
  for (int i = 0; i < 10; ++i) Push(1000);
  EXPECT_EQ(AwaitFate(EventFate::kQueueFull, 0), 16);
  sink_->Stop(absl::ZeroDuration());
  EXPECT_EQ(AwaitFate(EventFate::kFailed, 0), 6);
}

TEST_F(EventSinkTest, ASinkThatFailsIsLeftAloneForAWhile) {
  {
    const absl::MutexLock lock(&mutex_);
    answer_ = absl::UnavailableError("down");
  }
  Start();
  Push();
  EXPECT_EQ(AwaitFate(EventFate::kFailed, 1), 1);
  clock_.AwaitWaiters(1);
  EXPECT_EQ(AwaitFate(EventFate::kFailed, 0), 1);
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(AwaitFate(EventFate::kFailed, 2), 2);
  sink_->Stop(absl::Seconds(1));
  const absl::MutexLock lock(&mutex_);
  EXPECT_THAT(warnings_, ::testing::ElementsAre("down"));
}

TEST_F(EventSinkTest, AnEventThatTheSinkDoesNotTakeDelaysNoOther) {
  {
    const absl::MutexLock lock(&mutex_);
    answer_ = absl::InvalidArgumentError("the sink responded 431");
  }
  Start();
  for (int i = 0; i < 5; ++i) Push();
  // The clock stands still.
  EXPECT_EQ(AwaitFate(EventFate::kFailed, 10), 10);
}

TEST_F(EventSinkTest, StoppingSendsWhatIsQueued) {
  Start();
  for (int i = 0; i < 50; ++i) Push();
  sink_->Stop(absl::Seconds(1));
  EXPECT_EQ(AwaitFate(EventFate::kSent, 0), 100);
  Push();
  EXPECT_EQ(AwaitFate(EventFate::kQueueFull, 2), 2);
}

}  // namespace
}  // namespace saccade::server
