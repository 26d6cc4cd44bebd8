// Compares the CUDA kernels of expatt.cuh, compiled by g++ and run on the CPU, with the formulas in float64.
#include <gtest/gtest.h>

#include <limits>

#include "kernels/device/emulated_test.h"
#include "kernels/expatt/expatt.cuh"
#include "kernels/expatt/expatt_testing.h"

namespace saccade::kernels {
namespace {

struct ExpattKernels {
  using Config = ExpattTestConfig;
  template <typename T>
  using Case = ExpattTestCase<T>;

  static bool Fits(const ExpattProblem& problem) { return ExpattCudaFits(problem); }
  static int64_t Floats(const ExpattProblem& problem) {
    return ExpattCuda(problem, nullptr).FloatsOfWorkspace();
  }
  template <typename T>
  static void Run(const ExpattProblem& problem, float* workspace, const EmulatedLaunch& launch) {
    RunExpattCuda<T>(problem, workspace, launch);
  }
};
using ExpattEmulated = EmulatedTest<ExpattKernels>;

TEST_P(ExpattEmulated, MatchesTheFormulasInFloat32) { MatchesTheFormulas<float>(); }
TEST_P(ExpattEmulated, MatchesTheFormulasInBFloat16) { MatchesTheFormulas<DeviceBFloat16>(); }
TEST_P(ExpattEmulated, MatchesTheFormulasInFloat16) { MatchesTheFormulas<DeviceHalf>(); }
TEST_P(ExpattEmulated, DoesNotDependOnTheOrderOfThreads) { DoesNotDependOnTheOrderOfThreads<float>(); }

INSTANTIATE_TEST_SUITE_P(Configs, ExpattEmulated, testing::ValuesIn(ExpattTestConfigs()));

// The operator passes sigma's address in device memory instead of its value.
TEST(ExpattEmulatedTest, ReadsSigmaOnTheDevice) {
  for (const ExpattKind kind : {ExpattKind::kGaussian, ExpattKind::kExponentialEuclidean}) {
    ExpattTestCase<float> test({.kind = kind, .sigma = 0.25}, 5);
    const float sigma = 0.25f;
    ExpattProblem problem = test.Problem();
    problem.device_sigma = &sigma;
    problem.sigma = std::numeric_limits<double>::quiet_NaN();
    RunEmulated<ExpattKernels, float>(problem, 1);
    EXPECT_LE(test.Error(), kMaxEmulatedError<float>);
  }
}

// Several blocks in each dimension of every product.
TEST(ExpattEmulatedTest, ManyBlocks) {
  for (const ExpattKind kind : {ExpattKind::kGaussian, ExpattKind::kLinear}) {
    ExpattTestCase<float> test({.kind = kind,
                                .batch = 2,
                                .channels = 35,
                                .out_channels = 37,
                                .height = 5,
                                .width = 70,
                                .valid = {5, 70, 3, 66}},
                               6);
    RunEmulated<ExpattKernels, float>(test.Problem(), 1);
    EXPECT_LE(test.Error(), kMaxEmulatedError<float>);
  }
}

}  // namespace
}  // namespace saccade::kernels
