// Compares the CUDA kernels of expatt.cuh, compiled by g++ and run on the CPU, with the formulas in float64.
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "kernels/expatt/expatt.cuh"
#include "kernels/expatt/expatt_testing.h"

namespace saccade::kernels {
namespace {

template <typename T>
void RunEmulated(ExpattTestCase<T>& test, uint64_t seed, const float* sigma = nullptr) {
  ExpattProblem problem = test.Problem();
  if (sigma != nullptr) {
    problem.device_sigma = sigma;
    problem.sigma = std::numeric_limits<double>::quiet_NaN();
  }
  ASSERT_TRUE(ExpattCudaFits(problem));
  std::vector<float> workspace(ExpattCuda(problem, nullptr).FloatsOfWorkspace(),
                               std::numeric_limits<float>::quiet_NaN());
  RunExpattCuda<T>(problem, workspace.data(), EmulatedLaunch{seed});
}

class ExpattEmulated : public testing::TestWithParam<ExpattTestConfig> {};

TEST_P(ExpattEmulated, MatchesTheFormulasInFloat32) {
  ExpattTestCase<float> test(GetParam(), 1);
  RunEmulated(test, 1);
  EXPECT_LE(test.Error(), 1e-6);
}

TEST_P(ExpattEmulated, MatchesTheFormulasInBFloat16) {
  ExpattTestCase<DeviceBFloat16> test(GetParam(), 2);
  RunEmulated(test, 1);
  EXPECT_LE(test.Error(), 1e-2);
}

TEST_P(ExpattEmulated, MatchesTheFormulasInFloat16) {
  ExpattTestCase<DeviceHalf> test(GetParam(), 3);
  RunEmulated(test, 1);
  EXPECT_LE(test.Error(), 2e-3);
}

// A missing barrier makes the result depend on the order in which threads run.
TEST_P(ExpattEmulated, DoesNotDependOnTheOrderOfThreads) {
  ExpattTestCase<float> first(GetParam(), 4);
  RunEmulated(first, 1);
  ExpattTestCase<float> again(GetParam(), 4);
  RunEmulated(again, 2);
  EXPECT_TRUE(SameBits(first.out(), again.out()));
}

INSTANTIATE_TEST_SUITE_P(Configs, ExpattEmulated, testing::ValuesIn(ExpattTestConfigs()));

// The operator passes sigma's address in device memory instead of its value.
TEST(ExpattEmulatedTest, ReadsSigmaOnTheDevice) {
  for (const ExpattKind kind : {ExpattKind::kGaussian, ExpattKind::kExponentialEuclidean}) {
    ExpattTestCase<float> test({.kind = kind, .sigma = 0.25}, 5);
    const float sigma = 0.25f;
    RunEmulated(test, 1, &sigma);
    EXPECT_LE(test.Error(), 1e-6);
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
    RunEmulated(test, 1);
    EXPECT_LE(test.Error(), 1e-6);
  }
}

}  // namespace
}  // namespace saccade::kernels
