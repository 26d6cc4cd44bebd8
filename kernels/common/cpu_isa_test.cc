#include "kernels/common/cpu_isa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace saccade::kernels {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr int kFailed = 100;

// Ends the process with the number of the set that is used under this limit, plus 10 if it multiplies
// bfloat16; with kFailed if there is an exception, whose message it writes.
[[noreturn]] void ExitWithSet(const char* limit) {
  setenv(kCpuIsaVariable, limit, 1);
  try {
    std::exit(static_cast<int>(BestCpuIsa()) + (MultipliesBFloat16() ? 10 : 0));
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::exit(kFailed);
  }
}

// A set is chosen once in a process, so each test here executes itself for a new one.
class CpuIsaOfTheEnvironment : public testing::Test {
 protected:
  CpuIsaOfTheEnvironment() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  static bool IsAtMost(int status, CpuIsa most) {
    return WIFEXITED(status) && WEXITSTATUS(status) <= static_cast<int>(most);
  }
};

TEST(CpuIsaLimitOf, KnowsTheNames) {
  for (const CpuIsa isa : {CpuIsa::kPortable, CpuIsa::kAvx2, CpuIsa::kAvx512}) {
    EXPECT_EQ(CpuIsaLimitOf(CpuIsaName(isa)).isa, isa);
    EXPECT_FALSE(CpuIsaLimitOf(CpuIsaName(isa)).bfloat16);
  }
  EXPECT_EQ(CpuIsaLimitOf("avx512_bf16").isa, CpuIsa::kAvx512);
  EXPECT_TRUE(CpuIsaLimitOf("avx512_bf16").bfloat16);
}

TEST(CpuIsaLimitOf, AnotherNameIsAnErrorThatListsThem) {
  for (const char* const name : {"", "AVX2", "avx3", "avx2 "}) {
    EXPECT_THAT(
        [name] { CpuIsaLimitOf(name); },
        ThrowsMessage<std::invalid_argument>(HasSubstr("expected portable, avx2, avx512 or avx512_bf16")))
        << name;
  }
}

TEST_F(CpuIsaOfTheEnvironment, IsWithinTheLimit) {
  EXPECT_EXIT(ExitWithSet("portable"), [](int status) { return IsAtMost(status, CpuIsa::kPortable); }, "");
  EXPECT_EXIT(ExitWithSet("avx2"), [](int status) { return IsAtMost(status, CpuIsa::kAvx2); }, "");
  EXPECT_EXIT(ExitWithSet("avx512"), [](int status) { return IsAtMost(status, CpuIsa::kAvx512); }, "");
}

TEST_F(CpuIsaOfTheEnvironment, AnEmptyLimitIsNone) {
  EXPECT_EXIT(
      ExitWithSet(""), [](int status) { return WIFEXITED(status) && WEXITSTATUS(status) != kFailed; }, "");
}

TEST_F(CpuIsaOfTheEnvironment, AnUnknownLimitIsAnError) {
  EXPECT_EXIT(ExitWithSet("sse"), testing::ExitedWithCode(kFailed), "SACCADE_CPU_ISA is 'sse'");
}

}  // namespace
}  // namespace saccade::kernels
