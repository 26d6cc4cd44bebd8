// Compares the CPU code, for every instruction set that this processor supports, with the formulas in
// float64.
#include "kernels/sao/sao_cpu.h"

#include <gtest/gtest.h>

#include <tuple>

#include "kernels/common/bfloat16.h"
#include "kernels/sao/sao_testing.h"

namespace saccade::kernels {
namespace {

template <typename T>
void RunCpu(SaoTestCase<T>& test, CpuIsa isa, int threads) {
  const SaoProblem problem = test.Problem();
  const size_t bytes = SaoCpuWorkspaceBytes<T>(problem, threads);
  // Exactly as long as promised, and filled with NaN: all bits set is a NaN in every type.
  std::vector<std::byte> workspace(bytes, std::byte{0xff});
  RunSaoCpu<T>(problem, isa, PlainThreads(threads), workspace.data());
}

class SaoCpu : public testing::TestWithParam<std::tuple<SaoTestConfig, CpuIsa>> {
 protected:
  const SaoTestConfig& config() const { return std::get<0>(GetParam()); }
  CpuIsa isa() const { return std::get<1>(GetParam()); }
};

TEST_P(SaoCpu, MatchesTheFormulasInFloat32) {
  SaoTestCase<float> test(config(), 1);
  RunCpu(test, isa(), 2);
  EXPECT_LE(test.Error(), 1e-6);
}

TEST_P(SaoCpu, MatchesTheFormulasInBFloat16) {
  SaoTestCase<BFloat16> test(config(), 2);
  RunCpu(test, isa(), 2);
  EXPECT_LE(test.Error(), 1e-2);
}

TEST_P(SaoCpu, MatchesTheFormulasInFloat64) {
  SaoTestCase<double> test(config(), 3);
  RunCpu(test, isa(), 2);
  EXPECT_LE(test.Error(), 1e-12);
}

TEST_P(SaoCpu, DoesNotDependOnTheNumberOfThreads) {
  SaoTestCase<float> first(config(), 4);
  RunCpu(first, isa(), 1);
  for (const int threads : {2, 3, 7}) {
    SaoTestCase<float> again(config(), 4);
    RunCpu(again, isa(), threads);
    EXPECT_TRUE(SameBits(first.out(), again.out())) << threads << " threads";
  }
}

INSTANTIATE_TEST_SUITE_P(Configs, SaoCpu,
                         testing::Combine(testing::ValuesIn(SaoTestConfigs()),
                                          testing::ValuesIn(InstructionSets())));

// Several splits with a short last one.
INSTANTIATE_TEST_SUITE_P(
    Splits, SaoCpu,
    testing::Combine(testing::Values(SaoTestConfig{.channels = 600, .heads = 4, .extent = {11, 19}},
                                     SaoTestConfig{.batch = 2,
                                                   .channels = 520,
                                                   .heads = 2,
                                                   .extent = {10, 21},
                                                   .channels_last = true,
                                                   .valid = {9, 20, 10, 21}}),
                     testing::ValuesIn(InstructionSets())));

}  // namespace
}  // namespace saccade::kernels
