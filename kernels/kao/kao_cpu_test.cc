// Compares the CPU code, for every instruction set that this processor supports, with the formulas in
// float64.
#include "kernels/kao/kao_cpu.h"

#include <gtest/gtest.h>

#include <tuple>

#include "kernels/common/bfloat16.h"
#include "kernels/kao/kao_testing.h"

namespace saccade::kernels {
namespace {

template <typename T>
void RunCpu(KaoTestCase<T>& test, CpuIsa isa, int threads) {
  const KaoProblem problem = test.Problem();
  // Exactly as long as promised, and filled with NaN: all bits set is a NaN in every type.
  std::vector<std::byte> workspace(KaoCpuWorkspaceBytes(problem, threads), std::byte{0xff});
  RunKaoCpu(problem, isa, PlainThreads(threads), workspace.data());
}

class KaoCpu : public testing::TestWithParam<std::tuple<KaoTestConfig, CpuIsa>> {
 protected:
  const KaoTestConfig& config() const { return std::get<0>(GetParam()); }
  CpuIsa isa() const { return std::get<1>(GetParam()); }
};

TEST_P(KaoCpu, MatchesTheFormulasInFloat32) {
  KaoTestCase<float> test(config(), 1);
  RunCpu(test, isa(), 2);
  EXPECT_LE(test.Error(), 1e-6);
}

TEST_P(KaoCpu, MatchesTheFormulasInBFloat16) {
  KaoTestCase<BFloat16> test(config(), 2);
  RunCpu(test, isa(), 2);
  EXPECT_LE(test.Error(), 1e-2);
}

TEST_P(KaoCpu, DoesNotDependOnTheNumberOfThreads) {
  KaoTestCase<float> first(config(), 4);
  RunCpu(first, isa(), 1);
  for (const int threads : {2, 3, 7}) {
    KaoTestCase<float> again(config(), 4);
    RunCpu(again, isa(), threads);
    EXPECT_TRUE(SameBits(first.out(), again.out())) << threads << " threads";
  }
}

TEST_P(KaoCpu, ASampleDoesNotDependOnItsBatchOrPadding) {
  KaoTestCase<float> test(config(), 5);
  RunCpu(test, isa(), 2);
  for (int64_t b = 0; b < config().batch; ++b) {
    KaoTestCase<float> alone = test.Alone(b);
    if (alone.positions() == 0) continue;
    RunCpu(alone, isa(), 2);
    EXPECT_TRUE(test.Holds(alone, b)) << "sample " << b;
  }
}

// Large enough that the threads split each step, with several chunks of channels; and more keys than one
// block of them.
std::vector<KaoTestConfig> LargeConfigs() {
  return {{.channels = 136,
           .key_channels = 136,
           .value_channels = 136,
           .extent = {14, 18},
           .weights = "qvQ",
           .residual = true},
          {.kind = KaoKind::kAverageQueries,
           .batch = 2,
           .heads = 2,
           .channels = 132,
           .key_channels = 132,
           .value_channels = 132,
           .extent = {13, 21},
           .weights = "v",
           .residual = true,
           .memory = KaoMemory::kChannelsLast,
           .valid = {12, 20, 13, 21}},
          {.channels = 3, .key_channels = 3, .value_channels = 3, .extent = {2, 560}, .residual = true}};
}

INSTANTIATE_TEST_SUITE_P(Small, KaoCpu,
                         testing::Combine(testing::ValuesIn(KaoTestConfigs()),
                                          testing::ValuesIn(InstructionSets())));
INSTANTIATE_TEST_SUITE_P(Large, KaoCpu,
                         testing::Combine(testing::ValuesIn(LargeConfigs()),
                                          testing::ValuesIn(InstructionSets())));

// float64 has only portable code.
class KaoCpuFloat64 : public testing::TestWithParam<KaoTestConfig> {};

TEST_P(KaoCpuFloat64, MatchesTheFormulas) {
  KaoTestCase<double> test(GetParam(), 3);
  RunCpu(test, CpuIsa::kPortable, 2);
  EXPECT_LE(test.Error(), 1e-12);
}

INSTANTIATE_TEST_SUITE_P(Small, KaoCpuFloat64, testing::ValuesIn(KaoTestConfigs()));
INSTANTIATE_TEST_SUITE_P(Large, KaoCpuFloat64, testing::ValuesIn(LargeConfigs()));

}  // namespace
}  // namespace saccade::kernels
