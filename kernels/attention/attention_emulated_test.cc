// Compares the CUDA kernels of attention.cuh, compiled by g++ and run on the CPU, with the formulas in
// float64.
#include "kernels/attention/attention.cuh"

#include <gtest/gtest.h>

#include "kernels/attention/attention_testing.h"
#include "kernels/device/emulated_test.h"

namespace saccade::kernels {
namespace {

struct AttentionKernels {
  using Config = AttentionTestConfig;
  template <typename T>
  using Case = AttentionTestCase<T>;

  static bool Fits(const AttentionProblem& problem) { return AttentionCudaFits(problem); }
  static int64_t Floats(const AttentionProblem& problem) {
    return AttentionCuda(problem, nullptr).FloatsOfWorkspace();
  }
  template <typename T>
  static void Run(const AttentionProblem& problem, float* workspace, const EmulatedLaunch& launch) {
    RunAttentionCuda<T>(problem, workspace, launch);
  }
};
using AttentionEmulated = EmulatedTest<AttentionKernels>;
using AttentionEmulatedSome = EmulatedTest<AttentionKernels>;

TEST_P(AttentionEmulated, MatchesTheFormulasInFloat32) { MatchesTheFormulas<float>(); }
TEST_P(AttentionEmulated, MatchesTheFormulasInBFloat16) { MatchesTheFormulas<DeviceBFloat16>(); }
TEST_P(AttentionEmulatedSome, MatchesTheFormulasInFloat16) { MatchesTheFormulas<DeviceHalf>(); }
TEST_P(AttentionEmulatedSome, DoesNotDependOnTheOrderOfThreads) {
  DoesNotDependOnTheOrderOfThreads<DeviceBFloat16>();
}

INSTANTIATE_TEST_SUITE_P(Configs, AttentionEmulated, testing::ValuesIn(AttentionTestConfigs()));
INSTANTIATE_TEST_SUITE_P(Configs, AttentionEmulatedSome,
                         testing::ValuesIn(EveryThird(AttentionTestConfigs())));

}  // namespace
}  // namespace saccade::kernels
