// Compares the CUDA kernels of gsa.cuh, compiled by g++ and run on the CPU, with the formulas in float64.
#include <gtest/gtest.h>

#include "kernels/gsa/gsa.cuh"
#include "kernels/gsa/gsa_testing.h"

namespace saccade::kernels {
namespace {

template <typename T>
void RunEmulated(GsaTestCase<T>& test, uint64_t seed) {
  const GsaProblem problem = test.Problem();
  ASSERT_TRUE(GsaCudaFits(problem));
  std::vector<float> workspace(GsaCuda(problem, nullptr).FloatsOfWorkspace(),
                               std::numeric_limits<float>::quiet_NaN());
  RunGsaCuda<T>(problem, workspace.data(), EmulatedLaunch{seed});
}

class GsaEmulated : public testing::TestWithParam<GsaTestConfig> {};

TEST_P(GsaEmulated, MatchesTheFormulasInFloat32) {
  GsaTestCase<float> test(GetParam(), 1);
  RunEmulated(test, 1);
  EXPECT_LE(test.Error(), 1e-6);
}

TEST_P(GsaEmulated, MatchesTheFormulasInBFloat16) {
  GsaTestCase<DeviceBFloat16> test(GetParam(), 2);
  RunEmulated(test, 1);
  EXPECT_LE(test.Error(), 1e-2);
}

TEST_P(GsaEmulated, MatchesTheFormulasInFloat16) {
  GsaTestCase<DeviceHalf> test(GetParam(), 3);
  RunEmulated(test, 1);
  EXPECT_LE(test.Error(), 2e-3);
}

// A missing barrier makes the result depend on the order in which threads run.
TEST_P(GsaEmulated, DoesNotDependOnTheOrderOfThreads) {
  GsaTestCase<float> first(GetParam(), 4);
  RunEmulated(first, 1);
  GsaTestCase<float> again(GetParam(), 4);
  RunEmulated(again, 2);
  EXPECT_TRUE(SameBits(first.out(), again.out()));
}

INSTANTIATE_TEST_SUITE_P(Configs, GsaEmulated, testing::ValuesIn(GsaTestConfigs()));

}  // namespace
}  // namespace saccade::kernels
