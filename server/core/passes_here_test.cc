#include "server/core/passes_here.h"

#include <gtest/gtest.h>

#include <thread>

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

}  // namespace
}  // namespace saccade::server
