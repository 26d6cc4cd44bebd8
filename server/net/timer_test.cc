#include "server/net/timer.h"

#include <memory>
#include <stdexcept>
#include <string>

#include "gtest/gtest.h"

namespace saccade::server {
namespace {

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);

absl::Time At(int second) { return kStart + absl::Seconds(second); }

class TimerTest : public testing::Test {
 protected:
  std::unique_ptr<Timer> Named(char name) {
    return std::make_unique<Timer>(&timers_, [this, name] { ran_ += name; });
  }

  Timers timers_;
  std::string ran_;
};

TEST_F(TimerTest, RunsInTheOrderOfTimes) {
  const auto a = Named('a'), b = Named('b'), c = Named('c'), d = Named('d');
  EXPECT_EQ(timers_.Next(), absl::InfiniteFuture());
  a->Set(At(3));
  b->Set(At(1));
  c->Set(At(2));
  d->Set(At(4));
  EXPECT_EQ(timers_.Next(), At(1));
  timers_.RunDue(At(3));
  EXPECT_EQ(ran_, "bca");
  EXPECT_FALSE(a->is_set());
  EXPECT_TRUE(d->is_set());
  EXPECT_EQ(timers_.Next(), At(4));
  timers_.RunDue(At(3));
  EXPECT_EQ(ran_, "bca") << "each runs once";
}

TEST_F(TimerTest, ASecondTimeReplacesTheFirst) {
  const auto a = Named('a'), b = Named('b');
  a->Set(At(1));
  b->Set(At(2));
  a->Set(At(3));
  EXPECT_EQ(timers_.Next(), At(2));
  timers_.RunDue(At(2));
  EXPECT_EQ(ran_, "b");
  a->Set(absl::InfiniteFuture());
  EXPECT_FALSE(a->is_set());
  EXPECT_EQ(timers_.Next(), absl::InfiniteFuture());
}

TEST_F(TimerTest, AnActionMayCancelAndDestroyOthersThatAreDue) {
  auto later = Named('l'), destroyed = Named('d');
  Timer first(&timers_, [&] {
    ran_ += 'f';
    later->Cancel();
    destroyed.reset();
  });
  first.Set(At(1));
  later->Set(At(2));
  destroyed->Set(At(3));
  timers_.RunDue(At(5));
  EXPECT_EQ(ran_, "f");
  EXPECT_EQ(timers_.Next(), absl::InfiniteFuture());
}

TEST_F(TimerTest, AnActionMayDestroyItsOwnTimer) {
  const auto kept = std::make_shared<std::string>("kept");
  std::unique_ptr<Timer> timer;
  timer = std::make_unique<Timer>(&timers_, [this, &timer, kept] {
    timer.reset();
    ran_ = *kept;
  });
  timer->Set(At(1));
  timers_.RunDue(At(1));
  EXPECT_EQ(ran_, "kept");
  EXPECT_EQ(kept.use_count(), 1) << "the action is destroyed when it has run";
}

TEST_F(TimerTest, WhatAnActionSetsRunsInALaterCall) {
  std::unique_ptr<Timer> again;
  again = std::make_unique<Timer>(&timers_, [&] {
    ran_ += 'a';
    again->Set(At(0));
  });
  again->Set(At(1));
  timers_.RunDue(At(5));
  EXPECT_EQ(ran_, "a");
  EXPECT_EQ(timers_.Next(), At(0));
  timers_.RunDue(At(5));
  EXPECT_EQ(ran_, "aa");
}

TEST_F(TimerTest, ATimerThatIsDueMayBePostponedByAnother) {
  const auto b = Named('b');
  Timer a(&timers_, [&] { b->Set(At(9)); });
  a.Set(At(1));
  b->Set(At(2));
  timers_.RunDue(At(5));
  EXPECT_EQ(ran_, "");
  EXPECT_EQ(timers_.Next(), At(9));
}

TEST_F(TimerTest, AfterAnExceptionTheOthersRunInTheNextCall) {
  const auto b = Named('b');
  Timer a(&timers_, [] { throw std::runtime_error("full"); });
  a.Set(At(1));
  b->Set(At(2));
  EXPECT_THROW(timers_.RunDue(At(5)), std::runtime_error);
  EXPECT_EQ(timers_.Next(), At(2));
  timers_.RunDue(At(5));
  EXPECT_EQ(ran_, "b");
}

}  // namespace
}  // namespace saccade::server
