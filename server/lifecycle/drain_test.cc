#include "server/lifecycle/drain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "server/core/fake_clock.h"

namespace saccade::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr absl::Duration kTick = absl::Nanoseconds(1);
const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);

constexpr DrainOptions kOptions = {.lame_duck = absl::Seconds(5), .timeout = absl::Seconds(25)};

// The position after one transition from `state`, which was entered at kStart.
DrainPosition After(DrainState state, DrainFacts facts, absl::Duration spent,
                    absl::Time deadline = absl::InfiniteFuture()) {
  facts.now = kStart + spent;
  return NextPosition(kOptions, {state, kStart, deadline}, facts);
}

TEST(DrainStateTest, ServesUntilTheSignal) {
  EXPECT_EQ(After(DrainState::kServing, {}, absl::Hours(1)).state, DrainState::kServing);
  const DrainPosition next = After(DrainState::kServing, {.ends = true}, absl::Seconds(3));
  EXPECT_EQ(next.state, DrainState::kNotReady);
  EXPECT_EQ(next.since, kStart + absl::Seconds(3));
  EXPECT_EQ(next.deadline, absl::InfiniteFuture());
}

TEST(DrainStateTest, TheLameDuckTimeFollowsTheReport) {
  EXPECT_EQ(After(DrainState::kNotReady, {.ends = true}, absl::ZeroDuration()).state, DrainState::kLameDuck);
}

TEST(DrainStateTest, TheLameDuckTimeLastsUntilItsEndOrASecondSignal) {
  const DrainFacts busy = {.ends = true, .accepted = 3, .open_requests = 4};
  EXPECT_EQ(After(DrainState::kLameDuck, busy, kOptions.lame_duck - kTick).state, DrainState::kLameDuck);
  EXPECT_EQ(After(DrainState::kLameDuck, busy, kOptions.lame_duck).state, DrainState::kRefusing);
  EXPECT_EQ(After(DrainState::kLameDuck, {.ends = true, .hurry = true}, kTick).state, DrainState::kRefusing);
}

TEST(DrainStateTest, RequestsOnTheirWayAreAcceptedAfterGoAway) {
  EXPECT_EQ(After(DrainState::kRefusing, {.hurry = true}, kOptions.go_away - kTick).state,
            DrainState::kRefusing);
  const DrainPosition next = After(DrainState::kRefusing, {}, kOptions.go_away);
  EXPECT_EQ(next.state, DrainState::kFinishing);
  EXPECT_EQ(next.deadline, kStart + kOptions.go_away + kOptions.timeout);
}

TEST(DrainStateTest, FinishingLastsUntilEverythingIsAnsweredAndSent) {
  const absl::Time deadline = kStart + kOptions.timeout;
  const absl::Duration early = absl::Seconds(1);
  EXPECT_EQ(After(DrainState::kFinishing, {.accepted = 1, .open_requests = 1}, early, deadline).state,
            DrainState::kFinishing);
  EXPECT_EQ(After(DrainState::kFinishing, {.accepted = 0, .open_requests = 1}, early, deadline).state,
            DrainState::kFinishing)
      << "its answer is computed, not sent";
  EXPECT_EQ(After(DrainState::kFinishing, {.accepted = 1, .open_requests = 0}, early, deadline).state,
            DrainState::kFinishing)
      << "its client has gone, but it is still computed";
  const DrainPosition next = After(DrainState::kFinishing, {}, early, deadline);
  EXPECT_EQ(next.state, DrainState::kClosing);
  EXPECT_EQ(next.deadline, deadline);
}

TEST(DrainStateTest, FinishingTimesOut) {
  const absl::Time deadline = kStart + kOptions.timeout;
  const DrainFacts busy = {.open_requests = 1};
  EXPECT_EQ(After(DrainState::kFinishing, busy, kOptions.timeout - kTick, deadline).state,
            DrainState::kFinishing);
  EXPECT_EQ(After(DrainState::kFinishing, busy, kOptions.timeout, deadline).state, DrainState::kTimedOut);
  EXPECT_EQ(After(DrainState::kFinishing, {}, kOptions.timeout, deadline).state, DrainState::kClosing)
      << "finished at the last moment";
}

TEST(DrainStateTest, ClosingHasTimeOfItsOwn) {
  const absl::Time deadline = kStart + kOptions.timeout;
  const DrainPosition late = After(DrainState::kFinishing, {}, kOptions.timeout - kTick, deadline);
  EXPECT_EQ(late.deadline, kStart + kOptions.timeout - kTick + kOptions.closing);
}

TEST(DrainStateTest, ClosingEndsOrTimesOut) {
  const absl::Time deadline = kStart + kOptions.closing;
  EXPECT_EQ(After(DrainState::kClosing, {}, kOptions.closing - kTick, deadline).state, DrainState::kClosing);
  EXPECT_EQ(After(DrainState::kClosing, {.closed = true}, absl::ZeroDuration(), deadline).state,
            DrainState::kDone);
  EXPECT_EQ(After(DrainState::kClosing, {}, kOptions.closing, deadline).state, DrainState::kTimedOut);
  EXPECT_EQ(After(DrainState::kClosing, {.closed = true}, kOptions.closing, deadline).state,
            DrainState::kDone);
}

TEST(DrainStateTest, TheEndsAreFinal) {
  for (const DrainState end : {DrainState::kDone, DrainState::kTimedOut}) {
    const DrainPosition next =
        After(end, {.ends = true, .hurry = true, .closed = true}, absl::Hours(1), kStart);
    EXPECT_EQ(next.state, end);
    EXPECT_EQ(next.since, kStart);
  }
}

TEST(DrainStateTest, EveryStateHasAName) {
  EXPECT_EQ(NameOf(DrainState::kServing), "serving");
  EXPECT_EQ(NameOf(DrainState::kLameDuck), "lame_duck");
  EXPECT_EQ(NameOf(DrainState::kTimedOut), "timed_out");
}

// A daemon as its drain sees it, on virtual time.
class DrainTest : public testing::Test {
 protected:
  DrainHooks Hooks() {
    const auto step = [this](const char* what) { return [this, what] { steps_.push_back(what); }; };
    DrainHooks hooks;
    hooks.report_not_ready = step("not ready");
    hooks.refuse_loads = step("refuse loads");
    hooks.go_away = step("go away");
    hooks.refuse_requests = step("refuse requests");
    hooks.end_unfinished = [this] { ++ended_; };
    hooks.close = [this] {
      closing_ = true;
      close_();
    };
    hooks.count = [this](DrainFacts& facts) {
      EXPECT_FALSE(closing_) << "what is counted may be gone";
      facts.accepted = accepted_;
      facts.open_requests = open_;
      facts.cut_requests = cut_;
    };
    return hooks;
  }

  // Drains; `during` is called with the time since the signal at each wait, and returns whether another
  // signal has come.
  absl::Status Run(const std::function<bool(absl::Duration)>& during) {
    return Drain(kOptions, Hooks(), clock_, [&](absl::Duration wait) {
      const bool hurry = during(clock_.Now() - kStart);
      if (hurry) return true;
      if (steps_.size() == 4 && accepted_ == 0 && open_ == 0) {
        // The closing thread runs; time stands still until it has ended.
        std::this_thread::yield();
      } else {
        clock_.Advance(wait);
      }
      return false;
    });
  }

  FakeClock clock_{kStart};
  std::vector<std::string> steps_;
  // How often unfinished requests were ended.
  int ended_ = 0;
  std::atomic<bool> closing_ = false;
  int64_t accepted_ = 0;
  size_t open_ = 0;
  int64_t cut_ = 0;
  std::function<void()> close_ = [this] { closed_at_ = clock_.Now() - kStart; };
  absl::Duration closed_at_ = absl::InfiniteDuration();
};

TEST_F(DrainTest, AnIdleDaemonTakesEveryStepInOrder) {
  EXPECT_TRUE(Run([&](absl::Duration spent) {
                if (spent == absl::ZeroDuration()) {
                  EXPECT_THAT(steps_, ElementsAre("not ready", "refuse loads"))
                      << "load balancers see it first, and no load may last longer than the wait for them";
                } else if (spent == kOptions.lame_duck) {
                  EXPECT_THAT(steps_, ElementsAre("not ready", "refuse loads", "go away"));
                }
                return false;
              }).ok());
  EXPECT_THAT(steps_, ElementsAre("not ready", "refuse loads", "go away", "refuse requests"));
  EXPECT_GE(closed_at_, kOptions.lame_duck + kOptions.go_away);
  EXPECT_EQ(ended_, 0) << "nothing was unfinished";
}

TEST_F(DrainTest, ASecondSignalEndsTheLameDuckTimeAlone) {
  int signals = 0;
  EXPECT_TRUE(Run([&](absl::Duration spent) {
                if (spent > absl::ZeroDuration()) return false;
                return ++signals == 1;
              }).ok());
  EXPECT_GE(closed_at_, kOptions.go_away) << "requests on their way are still waited for";
  EXPECT_LT(closed_at_, kOptions.lame_duck);
}

TEST_F(DrainTest, WaitsForAnswersToBeSent) {
  accepted_ = 2;
  open_ = 3;
  const absl::Duration computed = absl::Seconds(10);
  const absl::Duration sent = absl::Seconds(12);
  EXPECT_TRUE(Run([&](absl::Duration spent) {
                if (spent >= computed) {
                  accepted_ = 0;
                  open_ = 1;
                } else {
                  EXPECT_EQ(ended_, 0) << "a stream with accepted requests is not ended";
                }
                if (spent >= sent) open_ = 0;
                return false;
              }).ok());
  EXPECT_GE(closed_at_, sent);
}

TEST_F(DrainTest, UnfinishedUploadsAreEndedAndLoseNothing) {
  open_ = 1;
  absl::Duration first = absl::InfiniteDuration();
  EXPECT_TRUE(Run([&](absl::Duration spent) {
                if (ended_ == 1) first = spent;
                if (ended_ == 3) open_ = 0;
                return false;
              }).ok());
  const absl::Duration refused = kOptions.lame_duck + kOptions.go_away;
  EXPECT_GE(first, refused + kOptions.upload_grace) << "they had time to complete";
  EXPECT_LT(first, refused + kOptions.upload_grace + absl::Seconds(1));
  EXPECT_EQ(ended_, 3) << "it is tried until none is left";
}

TEST_F(DrainTest, AnAnswerThatIsNotReadIsAnErrorAlthoughEverythingIsClosed) {
  open_ = 2;
  const absl::Status drained = Run([&](absl::Duration spent) {
    if (spent >= absl::Seconds(12)) {
      cut_ = 2;
      open_ = 0;
    }
    return false;
  });
  EXPECT_EQ(drained.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(drained.message()),
              HasSubstr("2 accepted requests were cut during the drain, because their clients did not "
                        "read the answers in time (--min-transfer-rate)"));
  EXPECT_GE(closed_at_, absl::Seconds(12));
  EXPECT_LT(closed_at_, absl::InfiniteDuration());
}

TEST_F(DrainTest, WhatWasCutIsToldOfADrainThatTimesOutToo) {
  accepted_ = 1;
  open_ = 1;
  cut_ = 3;
  const absl::Status drained = Run([](absl::Duration) { return false; });
  EXPECT_EQ(drained.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(drained.message()),
              HasSubstr("1 requests are not completely answered; 3 accepted requests were cut"));
}

TEST_F(DrainTest, ARequestThatTakesTooLongIsAnError) {
  accepted_ = 1;
  open_ = 2;
  absl::Duration last;
  const absl::Status drained = Run([&](absl::Duration spent) {
    last = spent;
    return false;
  });
  EXPECT_EQ(drained.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(
      std::string(drained.message()),
      HasSubstr("1 accepted requests did not finish within --drain-timeout-seconds (state finishing; 2 "
                "requests are not completely answered)"));
  EXPECT_LT(last, kOptions.lame_duck + kOptions.go_away + kOptions.timeout);
  EXPECT_EQ(closed_at_, absl::InfiniteDuration()) << "what still computes is not closed under it";
}

TEST_F(DrainTest, AnEndThatHangsIsAnError) {
  // Shared with the thread that is left behind.
  static absl::Notification release;
  static absl::Notification left;
  close_ = [] {
    release.WaitForNotification();
    left.Notify();
  };
  const absl::Status drained = Drain(
      kOptions,
      [&] {
        DrainHooks hooks = Hooks();
        hooks.close = close_;
        return hooks;
      }(),
      clock_,
      [&](absl::Duration wait) {
        clock_.Advance(wait);
        return false;
      });
  EXPECT_EQ(drained.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(drained.message()),
              HasSubstr("every accepted request was answered, but the models and ports could not be closed"));
  release.Notify();
  left.WaitForNotification();
}

TEST_F(DrainTest, CloseWithinLeavesBehindWhatHangs) {
  // Shared with the thread that is left behind.
  static absl::Notification release;
  static absl::Notification left;
  const auto hang = [] {
    release.WaitForNotification();
    left.Notify();
  };
  const auto advance = [&](absl::Duration wait) {
    clock_.Advance(wait);
    return true;
  };
  EXPECT_FALSE(CloseWithin(absl::Seconds(5), hang, clock_, advance));
  EXPECT_GE(clock_.Now() - kStart, absl::Seconds(5)) << "signals do not shorten it";
  EXPECT_LT(clock_.Now() - kStart, absl::Seconds(6));
  release.Notify();
  left.WaitForNotification();
}

TEST_F(DrainTest, CloseWithinAwaitsTheEnd) {
  bool closed = false;
  const auto stand_still = [](absl::Duration) {
    std::this_thread::yield();
    return false;
  };
  EXPECT_TRUE(CloseWithin(absl::Seconds(5), [&] { closed = true; }, clock_, stand_still));
  EXPECT_TRUE(closed);
}

// Closing without a thread of its own has to do.
TEST_F(DrainTest, WithoutAThreadTheCallerCloses) {
  pthread_attr_t usual, huge;
  ASSERT_EQ(pthread_getattr_default_np(&usual), 0);
  ASSERT_EQ(pthread_getattr_default_np(&huge), 0);
  // No system has memory for such a stack.
  ASSERT_EQ(pthread_attr_setstacksize(&huge, size_t{1} << 60), 0);
  ASSERT_EQ(pthread_setattr_default_np(&huge), 0);
  std::thread::id closer;
  close_ = [&] { closer = std::this_thread::get_id(); };
  const absl::Status drained = Run([](absl::Duration) { return false; });
  ASSERT_EQ(pthread_setattr_default_np(&usual), 0);
  EXPECT_TRUE(drained.ok()) << drained;
  EXPECT_EQ(closer, std::this_thread::get_id());
  pthread_attr_destroy(&usual);
  pthread_attr_destroy(&huge);
}

}  // namespace
}  // namespace saccade::server
