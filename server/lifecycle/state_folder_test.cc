#include "server/lifecycle/state_folder.h"

#include <stdlib.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class StateFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* const name : {"STATE_DIRECTORY", "XDG_STATE_HOME", "HOME"}) unsetenv(name);
  }
};

TEST_F(StateFolderTest, TheSystemsFolderGoesBeforeTheUsers) {
  EXPECT_EQ(DefaultStateFolder(), "");
  setenv("HOME", "/home/user", 1);
  EXPECT_EQ(DefaultStateFolder(), "/home/user/.local/state/saccade");
  setenv("XDG_STATE_HOME", "/state", 1);
  EXPECT_EQ(DefaultStateFolder(), "/state/saccade");
  setenv("STATE_DIRECTORY", "/var/lib/saccade:/var/lib/other", 1);
  EXPECT_EQ(DefaultStateFolder(), "/var/lib/saccade");
}

TEST_F(StateFolderTest, ARelativeFolderIsNoFolder) {
  setenv("STATE_DIRECTORY", "saccade", 1);
  setenv("XDG_STATE_HOME", "", 1);
  EXPECT_EQ(DefaultStateFolder(), "");
}

TEST(MachineNameTest, NamesWhatDecidesHowFastAModelIs) {
  EXPECT_THAT(MachineName(1), HasSubstr(", 1 core"));
  EXPECT_THAT(MachineName(2), HasSubstr(", 2 cores"));
  EXPECT_THAT(MachineName(2), Not(HasSubstr("\n")));
#ifdef __x86_64__
  EXPECT_THAT(MachineName(2), Not(HasSubstr("unknown")));
#endif
  EXPECT_THAT(BuildName("1.2"), StartsWith("1.2 of "));
}

}  // namespace
}  // namespace saccade::server
