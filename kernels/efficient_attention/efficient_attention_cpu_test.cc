// Compares the CPU code, for every instruction set that this processor supports, with the formulas in
// float64.
#include "kernels/efficient_attention/efficient_attention_cpu.h"

#include <gtest/gtest.h>

#include <tuple>

#include "kernels/efficient_attention/efficient_attention_testing.h"

namespace saccade::kernels {
namespace {

template <typename T>
void RunCpu(EaTestCase<T>& test, CpuIsa isa, int threads) {
  using A = Accumulate<T>;
  const EfficientAttentionProblem problem = test.Problem();
  // Exactly as long as promised, and filled with NaN: all bits set is a NaN in every type.
  std::vector<std::byte> workspace(EaCpuWorkspaceBytes<A>(problem, threads), std::byte{0xff});
  RunEaCpu<A>(problem, isa, PlainThreads(threads), workspace.data());
}

class EaCpu : public testing::TestWithParam<std::tuple<EaTestConfig, CpuIsa>> {
 protected:
  const EaTestConfig& config() const { return std::get<0>(GetParam()); }
  CpuIsa isa() const { return std::get<1>(GetParam()); }
};

TEST_P(EaCpu, MatchesTheFormulasInFloat32) {
  EaTestCase<float> test(config(), 1);
  RunCpu(test, isa(), 2);
  EXPECT_LE(test.Error(), 1e-6);
}

TEST_P(EaCpu, MatchesTheFormulasInBFloat16) {
  EaTestCase<BFloat16> test(config(), 2);
  RunCpu(test, isa(), 2);
  EXPECT_LE(test.Error(), 1e-2);
}

TEST_P(EaCpu, MatchesTheFormulasInFloat64) {
  EaTestCase<double> test(config(), 3);
  RunCpu(test, isa(), 2);
  EXPECT_LE(test.Error(), 1e-12);
}

TEST_P(EaCpu, DoesNotDependOnTheNumberOfThreads) {
  EaTestCase<float> first(config(), 4);
  RunCpu(first, isa(), 1);
  for (const int threads : {2, 3, 7}) {
    EaTestCase<float> again(config(), 4);
    RunCpu(again, isa(), threads);
    EXPECT_TRUE(SameBits(first.out(), again.out())) << threads << " threads";
  }
}

INSTANTIATE_TEST_SUITE_P(Configs, EaCpu,
                         testing::Combine(testing::ValuesIn(EaTestConfigs()),
                                          testing::ValuesIn(InstructionSets())));

}  // namespace
}  // namespace saccade::kernels
