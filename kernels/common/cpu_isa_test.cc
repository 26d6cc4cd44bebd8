#include "kernels/common/cpu_isa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace saccade::kernels {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr int kFailed = 100;

// Ends the process with the number of the set that is used under this limit (null: none), plus 10 if it
// multiplies bfloat16 and 20 if it sums products of bytes; with kFailed if there is an exception, whose
// message it writes.
[[noreturn]] void ExitWithSet(const char* limit) {
  if (limit == nullptr) {
    unsetenv(kCpuIsaVariable);
  } else {
    setenv(kCpuIsaVariable, limit, 1);
  }
  try {
    std::exit(static_cast<int>(BestCpuIsa()) + (MultipliesBFloat16() ? 10 : 0) + (MultipliesInt8() ? 20 : 0));
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::exit(kFailed);
  }
}

// A set is chosen once in a process, so each test here executes itself for a new one.
class CpuIsaOfTheEnvironment : public testing::Test {
 protected:
  CpuIsaOfTheEnvironment() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  // Sets unlimited_.
  void FindUnlimited() {
    const auto keep = [this](int status) {
      unlimited_ = WIFEXITED(status) ? WEXITSTATUS(status) : kFailed;
      return unlimited_ != kFailed;
    };
    EXPECT_EXIT(ExitWithSet(nullptr), keep, "");
  }

  // The exit code of a limit to the set `most`, without instructions for bfloat16 and bytes.
  int Limited(CpuIsa most) const { return std::min(unlimited_ % 10, static_cast<int>(most)); }

  // The exit code of ExitWithSet() without a limit.
  int unlimited_ = kFailed;
};

TEST(CpuIsaLimitOf, KnowsTheNames) {
  for (const CpuIsa isa : {CpuIsa::kPortable, CpuIsa::kAvx2, CpuIsa::kAvx512}) {
    EXPECT_EQ(CpuIsaLimitOf(CpuIsaName(isa)).isa, isa);
    EXPECT_FALSE(CpuIsaLimitOf(CpuIsaName(isa)).bfloat16);
    EXPECT_FALSE(CpuIsaLimitOf(CpuIsaName(isa)).int8);
    EXPECT_FALSE(CpuIsaLimitOf(CpuIsaName(isa)).amx);
  }
  EXPECT_EQ(CpuIsaLimitOf("avx512_bf16").isa, CpuIsa::kAvx512);
  EXPECT_TRUE(CpuIsaLimitOf("avx512_bf16").bfloat16);
  EXPECT_TRUE(CpuIsaLimitOf("avx512_bf16").int8);
  EXPECT_FALSE(CpuIsaLimitOf("avx512_bf16").amx);
}

TEST(CpuIsaLimitOf, AnotherNameIsAnErrorThatListsThem) {
  for (const char* const name : {"", "AVX2", "avx3", "avx2 "}) {
    EXPECT_THAT(
        [name] { CpuIsaLimitOf(name); },
        ThrowsMessage<std::invalid_argument>(HasSubstr("expected portable, avx2, avx512 or avx512_bf16")))
        << name;
  }
}

TEST_F(CpuIsaOfTheEnvironment, IsTheBestWithinTheLimit) {
  FindUnlimited();
  EXPECT_EXIT(ExitWithSet("portable"), testing::ExitedWithCode(Limited(CpuIsa::kPortable)), "");
  EXPECT_EXIT(ExitWithSet("avx2"), testing::ExitedWithCode(Limited(CpuIsa::kAvx2)), "");
  EXPECT_EXIT(ExitWithSet("avx512"), testing::ExitedWithCode(Limited(CpuIsa::kAvx512)), "");
}

TEST_F(CpuIsaOfTheEnvironment, AnEmptyLimitIsNone) {
  FindUnlimited();
  EXPECT_EXIT(ExitWithSet(""), testing::ExitedWithCode(unlimited_), "");
}

TEST_F(CpuIsaOfTheEnvironment, TheLastNameLeavesAllButAmx) {
  FindUnlimited();
  EXPECT_EXIT(ExitWithSet("avx512_bf16"), testing::ExitedWithCode(unlimited_), "");
}

TEST_F(CpuIsaOfTheEnvironment, AnUnknownLimitIsAnError) {
  EXPECT_EXIT(ExitWithSet("sse"), testing::ExitedWithCode(kFailed), "SACCADE_CPU_ISA is 'sse'");
}

}  // namespace
}  // namespace saccade::kernels
