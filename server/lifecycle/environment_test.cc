#include "server/lifecycle/environment.h"

#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

namespace saccade::server {
namespace {

constexpr const char* kVariables[] = {"TCMALLOC_LARGE_ALLOC_REPORT_THRESHOLD", "AOTI_RUNTIME_CHECK_INPUTS",
                                      "GOMP_SPINCOUNT"};
// For the executed program: the expected value of GOMP_SPINCOUNT.
constexpr char kExpected[] = "SACCADE_ENVIRONMENT_TEST";

std::string Value(const char* name) {
  const char* const value = getenv(name);
  return value == nullptr ? "unset" : value;
}

// Runs SetLibraryDefaults() in a child process that executes this program again with the test Executed below;
// returns its exit code.
int Execute(void (*prepare)()) {
  const pid_t child = fork();
  if (child == 0) {
    prepare();
    std::vector<std::string> words = {"test", "--gtest_filter=EnvironmentTest.Executed"};
    char* argv[] = {words[0].data(), words[1].data(), nullptr};
    SetLibraryDefaults(argv);
    // Nothing had to be changed.
    _exit(77);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(EnvironmentTest, Executed) {
  if (getenv(kExpected) == nullptr) GTEST_SKIP() << "the other tests execute this one";
  EXPECT_EQ(Value("TCMALLOC_LARGE_ALLOC_REPORT_THRESHOLD"), "0");
  EXPECT_EQ(Value("AOTI_RUNTIME_CHECK_INPUTS"), "1");
  if (Value(kExpected) == "measured") {
    const bool alone = std::thread::hardware_concurrency() < 2;
    EXPECT_GE(std::stoi(Value("GOMP_SPINCOUNT")), alone ? 0 : 1000);
    EXPECT_THAT(Value("SACCADE_SPINNING_REASON"), testing::HasSubstr(alone ? "one core" : "a wake-up takes"));
  } else {
    EXPECT_EQ(Value("GOMP_SPINCOUNT"), Value(kExpected));
    EXPECT_EQ(Value("SACCADE_SPINNING_REASON"), "unset");
  }
}

TEST(EnvironmentTest, MissingVariablesAreSetBeforeTheLibrariesReadThem) {
  EXPECT_EQ(Execute([] {
              for (const char* name : kVariables) unsetenv(name);
              unsetenv("OMP_WAIT_POLICY");
              setenv(kExpected, "measured", 1);
            }),
            0);
}

TEST(EnvironmentTest, TheUsersValuesAreKept) {
  EXPECT_EQ(Execute([] {
              for (const char* name : kVariables) unsetenv(name);
              unsetenv("OMP_WAIT_POLICY");
              setenv("GOMP_SPINCOUNT", "5", 1);
              setenv(kExpected, "5", 1);
            }),
            0);
}

TEST(EnvironmentTest, AWaitPolicyReplacesTheSpinCount) {
  EXPECT_EQ(Execute([] {
              for (const char* name : kVariables) unsetenv(name);
              setenv("OMP_WAIT_POLICY", "active", 1);
              setenv(kExpected, "unset", 1);
            }),
            0);
}

TEST(EnvironmentTest, AProgramThatHasThemAllIsNotExecutedAgain) {
  EXPECT_EQ(Execute([] {
              for (const char* name : kVariables) setenv(name, "1", 1);
            }),
            77);
}

}  // namespace
}  // namespace saccade::server
