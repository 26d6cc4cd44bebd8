// Compares the CUDA kernels of efficient_attention.cuh, compiled by g++ and run on the CPU, with the formulas
// in float64.
#include "kernels/efficient_attention/efficient_attention.cuh"

#include <gtest/gtest.h>

#include <limits>

#include "kernels/efficient_attention/efficient_attention_testing.h"

namespace saccade::kernels {
namespace {

template <typename T>
void RunEmulated(EaTestCase<T>& test, uint64_t seed) {
  const EfficientAttentionProblem problem = test.Problem();
  ASSERT_TRUE(EaCudaFits(problem));
  std::vector<float> workspace(EaCuda(problem, nullptr).FloatsOfWorkspace(),
                               std::numeric_limits<float>::quiet_NaN());
  RunEaCuda<T>(problem, workspace.data(), EmulatedLaunch{seed});
}

class EaEmulated : public testing::TestWithParam<EaTestConfig> {};

TEST_P(EaEmulated, MatchesTheFormulasInFloat32) {
  EaTestCase<float> test(GetParam(), 1);
  RunEmulated(test, 1);
  EXPECT_LE(test.Error(), 1e-6);
}

TEST_P(EaEmulated, MatchesTheFormulasInBFloat16) {
  EaTestCase<DeviceBFloat16> test(GetParam(), 2);
  RunEmulated(test, 1);
  EXPECT_LE(test.Error(), 1e-2);
}

INSTANTIATE_TEST_SUITE_P(Configs, EaEmulated, testing::ValuesIn(EaTestConfigs()));

// Checks that do not depend on the kind of problem run on only a part of the problems, because fibres are
// slow.
class EaEmulatedSome : public testing::TestWithParam<EaTestConfig> {};

TEST_P(EaEmulatedSome, MatchesTheFormulasInFloat16) {
  EaTestCase<DeviceHalf> test(GetParam(), 3);
  RunEmulated(test, 1);
  EXPECT_LE(test.Error(), 2e-3);
}

// A missing barrier makes the result depend on the order in which threads run.
TEST_P(EaEmulatedSome, DoesNotDependOnTheOrderOfThreads) {
  EaTestCase<float> first(GetParam(), 4);
  RunEmulated(first, 1);
  EaTestCase<float> again(GetParam(), 4);
  RunEmulated(again, 2);
  EXPECT_TRUE(SameBits(first.out(), again.out()));
}

std::vector<EaTestConfig> EveryThird() {
  const auto all = EaTestConfigs();
  std::vector<EaTestConfig> some;
  for (size_t i = 0; i < all.size(); i += 3) some.push_back(all[i]);
  return some;
}

INSTANTIATE_TEST_SUITE_P(Configs, EaEmulatedSome, testing::ValuesIn(EveryThird()));

TEST(EaEmulatedTest, WiderThanABlock) {
  // More than 256 channels: the logits go through the workspace.
  EaTestCase<float> test({.channels = 260, .keys = 6, .values = 4, .out = 260, .heads = 2, .extent = {9, 11}},
                         5);
  RunEmulated(test, 1);
  EXPECT_LE(test.Error(), 1e-6);
}

}  // namespace
}  // namespace saccade::kernels
