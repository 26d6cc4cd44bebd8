#include "server/core/passes_here.h"

#include <gtest/gtest.h>

#include <thread>

#include "server/core/fake_clock.h"

namespace saccade::server {
namespace {

TEST(PassesHere, TheStrictestLimitCountsWhileItExists) {
  EXPECT_EQ(LimitPassesHere::Current(), PassesHere::kAny);
  {
    const LimitPassesHere none(PassesHere::kNone);
    {
      const LimitPassesHere own(PassesHere::kOwn);
      EXPECT_EQ(LimitPassesHere::Current(), PassesHere::kNone);
    }
    EXPECT_EQ(LimitPassesHere::Current(), PassesHere::kNone);
  }
  EXPECT_EQ(LimitPassesHere::Current(), PassesHere::kAny);
  const LimitPassesHere own(PassesHere::kOwn);
  EXPECT_EQ(LimitPassesHere::Current(), PassesHere::kOwn);
  const LimitPassesHere none(PassesHere::kNone);
  EXPECT_EQ(LimitPassesHere::Current(), PassesHere::kNone);
}

TEST(PassesHere, OtherThreadsAreNotLimited) {
  const LimitPassesHere none(PassesHere::kNone);
  PassesHere other = PassesHere::kNone;
  std::thread([&] { other = LimitPassesHere::Current(); }).join();
  EXPECT_EQ(other, PassesHere::kAny);
}

TEST(PassesHere, TheirTimeIsCountedOnce) {
  FakeClock clock;
  {
    const TimePassesHere outer(&clock);
    clock.Advance(absl::Milliseconds(2));
    {
      const TimePassesHere inner(&clock);
      clock.Advance(absl::Milliseconds(3));
    }
    clock.Advance(absl::Milliseconds(1));
  }
  EXPECT_EQ(TimeOfPassesHere(), absl::Milliseconds(6));
  {
    const TimePassesHere next(&clock);
    clock.Advance(absl::Milliseconds(4));
  }
  EXPECT_EQ(TimeOfPassesHere(), absl::Milliseconds(10));
  absl::Duration other = absl::InfiniteDuration();
  std::thread([&] { other = TimeOfPassesHere(); }).join();
  EXPECT_EQ(other, absl::ZeroDuration());
}

}  // namespace
}  // namespace saccade::server
