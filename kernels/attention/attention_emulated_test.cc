// Compares the CUDA kernels of attention.cuh, compiled by g++ and run on the CPU, with the formulas in
// float64.
#include "kernels/attention/attention.cuh"

#include <gtest/gtest.h>

#include <limits>

#include "kernels/attention/attention_testing.h"

namespace saccade::kernels {
namespace {

template <typename T>
void RunEmulated(AttentionTestCase<T>& test, uint64_t seed) {
  const AttentionProblem problem = test.Problem();
  ASSERT_TRUE(AttentionCudaFits(problem));
  std::vector<float> workspace(AttentionCuda(problem, nullptr).FloatsOfWorkspace(),
                               std::numeric_limits<float>::quiet_NaN());
  RunAttentionCuda<T>(problem, workspace.data(), EmulatedLaunch{seed});
}

class AttentionEmulated : public testing::TestWithParam<AttentionTestConfig> {};

TEST_P(AttentionEmulated, MatchesTheFormulasInFloat32) {
  AttentionTestCase<float> test(GetParam(), 1);
  RunEmulated(test, 1);
  EXPECT_LE(test.Error(), 1e-6);
}

TEST_P(AttentionEmulated, MatchesTheFormulasInBFloat16) {
  AttentionTestCase<DeviceBFloat16> test(GetParam(), 2);
  RunEmulated(test, 1);
  EXPECT_LE(test.Error(), 1e-2);
}

INSTANTIATE_TEST_SUITE_P(Configs, AttentionEmulated, testing::ValuesIn(AttentionTestConfigs()));

// Checks that do not depend on the kind of problem run on only a part of the problems, because fibres are
// slow.
class AttentionEmulatedSome : public testing::TestWithParam<AttentionTestConfig> {};

TEST_P(AttentionEmulatedSome, MatchesTheFormulasInFloat16) {
  AttentionTestCase<DeviceHalf> test(GetParam(), 3);
  RunEmulated(test, 1);
  EXPECT_LE(test.Error(), 2e-3);
}

// A missing barrier makes the result depend on the order in which threads run.
TEST_P(AttentionEmulatedSome, DoesNotDependOnTheOrderOfThreads) {
  AttentionTestCase<DeviceBFloat16> first(GetParam(), 4);
  RunEmulated(first, 1);
  AttentionTestCase<DeviceBFloat16> again(GetParam(), 4);
  RunEmulated(again, 2);
  EXPECT_TRUE(SameBits(first.out(), again.out()));
}

std::vector<AttentionTestConfig> EveryThird() {
  const auto all = AttentionTestConfigs();
  std::vector<AttentionTestConfig> some;
  for (size_t i = 0; i < all.size(); i += 3) some.push_back(all[i]);
  return some;
}

INSTANTIATE_TEST_SUITE_P(Configs, AttentionEmulatedSome, testing::ValuesIn(EveryThird()));

}  // namespace
}  // namespace saccade::kernels
