#include "server/core/inline_passes.h"

#include <gtest/gtest.h>

#include <thread>

#include "server/core/fake_clock.h"

namespace saccade::server {
namespace {

TEST(InlinePasses, TheStrictestLimitCountsWhileItExists) {
  EXPECT_EQ(LimitInlinePasses::Current(), InlinePasses::kAny);
  {
    const LimitInlinePasses none(InlinePasses::kNone);
    {
      const LimitInlinePasses own(InlinePasses::kOwn);
      EXPECT_EQ(LimitInlinePasses::Current(), InlinePasses::kNone);
    }
    EXPECT_EQ(LimitInlinePasses::Current(), InlinePasses::kNone);
  }
  EXPECT_EQ(LimitInlinePasses::Current(), InlinePasses::kAny);
  const LimitInlinePasses own(InlinePasses::kOwn);
  EXPECT_EQ(LimitInlinePasses::Current(), InlinePasses::kOwn);
  const LimitInlinePasses none(InlinePasses::kNone);
  EXPECT_EQ(LimitInlinePasses::Current(), InlinePasses::kNone);
}

TEST(InlinePasses, OtherThreadsAreNotLimited) {
  const LimitInlinePasses none(InlinePasses::kNone);
  InlinePasses other = InlinePasses::kNone;
  std::thread([&] { other = LimitInlinePasses::Current(); }).join();
  EXPECT_EQ(other, InlinePasses::kAny);
}

TEST(InlinePasses, TheirTimeIsCountedOnce) {
  FakeClock clock;
  {
    const TimeInlinePasses outer(&clock);
    clock.Advance(absl::Milliseconds(2));
    {
      const TimeInlinePasses inner(&clock);
      clock.Advance(absl::Milliseconds(3));
    }
    clock.Advance(absl::Milliseconds(1));
  }
  EXPECT_EQ(InlinePassTime(), absl::Milliseconds(6));
  {
    const TimeInlinePasses next(&clock);
    clock.Advance(absl::Milliseconds(4));
  }
  EXPECT_EQ(InlinePassTime(), absl::Milliseconds(10));
  absl::Duration other = absl::InfiniteDuration();
  std::thread([&] { other = InlinePassTime(); }).join();
  EXPECT_EQ(other, absl::ZeroDuration());
}

}  // namespace
}  // namespace saccade::server
