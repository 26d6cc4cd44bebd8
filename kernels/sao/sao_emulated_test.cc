// Compares the CUDA kernels of sao.cuh, compiled by g++ and run on the CPU, with the formulas in float64.
#include "kernels/sao/sao.cuh"

#include <gtest/gtest.h>

#include "kernels/device/emulated_test.h"
#include "kernels/sao/sao_testing.h"

namespace saccade::kernels {
namespace {

struct SaoKernels {
  using Config = SaoTestConfig;
  template <typename T>
  using Case = SaoTestCase<T>;

  static bool Fits(const SaoProblem& problem) { return SaoCudaFits(problem); }
  static int64_t Floats(const SaoProblem& problem) { return SaoCuda(problem, nullptr).FloatsOfWorkspace(); }
  template <typename T>
  static void Run(const SaoProblem& problem, float* workspace, const EmulatedLaunch& launch) {
    RunSaoCuda<T>(problem, workspace, launch);
  }
};
using SaoEmulated = EmulatedTest<SaoKernels>;

TEST_P(SaoEmulated, MatchesTheFormulasInFloat32) { MatchesTheFormulas<float>(); }
TEST_P(SaoEmulated, MatchesTheFormulasInBFloat16) { MatchesTheFormulas<DeviceBFloat16>(); }
TEST_P(SaoEmulated, MatchesTheFormulasInFloat16) { MatchesTheFormulas<DeviceHalf>(); }
TEST_P(SaoEmulated, DoesNotDependOnTheOrderOfThreads) { DoesNotDependOnTheOrderOfThreads<float>(); }

INSTANTIATE_TEST_SUITE_P(Configs, SaoEmulated, testing::ValuesIn(SaoTestConfigs()));

TEST(SaoEmulatedTest, ManySplits) {
  // More tiles than splits, so that each block processes several tiles.
  SaoTestCase<float> test({.channels = 2, .heads = 2, .extent = {91, 91}}, 5);
  ASSERT_GT(test.positions(), SaoCuda::kTile * SaoCuda::kMaxSplits);
  RunEmulated<SaoKernels, float>(test.Problem(), 1);
  EXPECT_LE(test.Error(), kMaxEmulatedError<float>);
}

}  // namespace
}  // namespace saccade::kernels
