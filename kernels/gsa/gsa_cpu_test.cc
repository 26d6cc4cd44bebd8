// Compares the CPU code, for every instruction set that this processor supports, with the formulas in
// float64.
#include "kernels/gsa/gsa_cpu.h"

#include <gtest/gtest.h>

#include <tuple>

#include "kernels/common/bfloat16.h"
#include "kernels/gsa/gsa_testing.h"

namespace saccade::kernels {
namespace {

template <typename T>
void RunCpu(GsaTestCase<T>& test, CpuIsa isa, int threads) {
  const GsaProblem problem = test.Problem();
  const size_t bytes = GsaCpuWorkspaceBytes<Accumulate<T>>(problem, threads);
  // Exactly as long as promised, and filled with NaN: all bits set is a NaN in every type.
  std::vector<std::byte> workspace(bytes, std::byte{0xff});
  RunGsaCpu<Accumulate<T>>(problem, isa, PlainThreads(threads), workspace.data());
}

class GsaCpu : public testing::TestWithParam<std::tuple<GsaTestConfig, CpuIsa>> {
 protected:
  const GsaTestConfig& config() const { return std::get<0>(GetParam()); }
  CpuIsa isa() const { return std::get<1>(GetParam()); }
};

TEST_P(GsaCpu, MatchesTheFormulasInFloat32) {
  GsaTestCase<float> test(config(), 1);
  RunCpu(test, isa(), 2);
  EXPECT_LE(test.Error(), 1e-6);
}

TEST_P(GsaCpu, MatchesTheFormulasInBFloat16) {
  GsaTestCase<BFloat16> test(config(), 2);
  RunCpu(test, isa(), 2);
  EXPECT_LE(test.Error(), 1e-2);
}

TEST_P(GsaCpu, MatchesTheFormulasInFloat64) {
  GsaTestCase<double> test(config(), 3);
  RunCpu(test, isa(), 2);
  EXPECT_LE(test.Error(), 1e-12);
}

TEST_P(GsaCpu, DoesNotDependOnTheNumberOfThreads) {
  GsaTestCase<float> first(config(), 4);
  RunCpu(first, isa(), 1);
  for (const int threads : {2, 3, 7}) {
    GsaTestCase<float> again(config(), 4);
    RunCpu(again, isa(), threads);
    EXPECT_TRUE(SameBits(first.out(), again.out())) << threads << " threads";
  }
}

INSTANTIATE_TEST_SUITE_P(Configs, GsaCpu,
                         testing::Combine(testing::ValuesIn(GsaTestConfigs()),
                                          testing::ValuesIn(InstructionSets())));

// Splits of several tiles, and more samples than threads.
INSTANTIATE_TEST_SUITE_P(
    Large, GsaCpu,
    testing::Combine(
        testing::Values(GsaTestConfig{.channels = 3, .heads = 1, .key_channels = 2, .extent = {45, 51}},
                        GsaTestConfig{.batch = 9, .channels = 0, .extent = {9, 10}},
                        GsaTestConfig{.channels = 300, .heads = 2, .key_channels = 34, .extent = {3, 4}}),
        testing::ValuesIn(InstructionSets())));

}  // namespace
}  // namespace saccade::kernels
