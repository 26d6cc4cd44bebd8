#include "server/lifecycle/descriptors.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace saccade::server {
namespace {

TEST(DescriptorsTest, TheSoftLimitIsRaisedToTheHardLimit) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low = {.rlim_cur = 256, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  EXPECT_EQ(RaiseFileLimit(), before.rlim_max);
  rlimit now{};
  getrlimit(RLIMIT_NOFILE, &now);
  EXPECT_EQ(now.rlim_cur, before.rlim_max);
  EXPECT_EQ(RaiseFileLimit(), before.rlim_max) << "nothing is left to raise";
  setrlimit(RLIMIT_NOFILE, &before);
}

}  // namespace
}  // namespace saccade::server
