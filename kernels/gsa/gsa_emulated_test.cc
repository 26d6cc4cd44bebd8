// Compares the CUDA kernels of gsa.cuh, compiled by g++ and run on the CPU, with the formulas in float64.
#include <gtest/gtest.h>

#include "kernels/device/emulated_test.h"
#include "kernels/gsa/gsa.cuh"
#include "kernels/gsa/gsa_testing.h"

namespace saccade::kernels {
namespace {

struct GsaKernels {
  using Config = GsaTestConfig;
  template <typename T>
  using Case = GsaTestCase<T>;

  static bool Fits(const GsaProblem& problem) { return GsaCudaFits(problem); }
  static int64_t Floats(const GsaProblem& problem) { return GsaCuda(problem, nullptr).FloatsOfWorkspace(); }
  template <typename T>
  static void Run(const GsaProblem& problem, float* workspace, const EmulatedLaunch& launch) {
    RunGsaCuda<T>(problem, workspace, launch);
  }
};
using GsaEmulated = EmulatedTest<GsaKernels>;

TEST_P(GsaEmulated, MatchesTheFormulasInFloat32) { MatchesTheFormulas<float>(); }
TEST_P(GsaEmulated, MatchesTheFormulasInBFloat16) { MatchesTheFormulas<DeviceBFloat16>(); }
TEST_P(GsaEmulated, MatchesTheFormulasInFloat16) { MatchesTheFormulas<DeviceHalf>(); }
TEST_P(GsaEmulated, DoesNotDependOnTheOrderOfThreads) { DoesNotDependOnTheOrderOfThreads<float>(); }

INSTANTIATE_TEST_SUITE_P(Configs, GsaEmulated, testing::ValuesIn(GsaTestConfigs()));

}  // namespace
}  // namespace saccade::kernels
