#include "server/lifecycle/descriptors.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace saccade::server {
namespace {

TEST(DescriptorsTest, ClosedStandardDescriptorsAreOpened) {
  const int saved = dup(STDERR_FILENO);
  close(STDERR_FILENO);
  OpenStandardDescriptors();
  EXPECT_NE(fcntl(STDERR_FILENO, F_GETFD), -1);
  const int next = open("/dev/null", O_RDONLY);
  EXPECT_GT(next, STDERR_FILENO);
  close(next);
  EXPECT_EQ(write(STDERR_FILENO, "x", 1), 1);
  dup2(saved, STDERR_FILENO);
  close(saved);
}

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
