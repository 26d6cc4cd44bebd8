// Compares the CUDA kernels of kao.cuh, compiled by g++ and run on the CPU, with the formulas in float64.
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "kernels/kao/kao.cuh"
#include "kernels/kao/kao_testing.h"

namespace saccade::kernels {
namespace {

template <typename T>
void RunEmulated(KaoTestCase<T>& test, uint64_t seed) {
  const KaoProblem problem = test.Problem();
  ASSERT_TRUE(KaoCudaFits(problem));
  std::vector<float> workspace(KaoCuda(problem, nullptr).FloatsOfWorkspace(),
                               std::numeric_limits<float>::quiet_NaN());
  RunKaoCuda<T>(problem, workspace.data(), EmulatedLaunch{seed});
}

class KaoEmulated : public testing::TestWithParam<KaoTestConfig> {};

TEST_P(KaoEmulated, MatchesTheFormulasInFloat32) {
  KaoTestCase<float> test(GetParam(), Dtype::kFloat32, 1);
  RunEmulated(test, 1);
  EXPECT_LE(test.Error(), 1e-6);
}

TEST_P(KaoEmulated, MatchesTheFormulasInBFloat16) {
  KaoTestCase<DeviceBFloat16> test(GetParam(), Dtype::kBFloat16, 2);
  RunEmulated(test, 1);
  EXPECT_LE(test.Error(), 1e-2);
}

TEST_P(KaoEmulated, MatchesTheFormulasInFloat16) {
  KaoTestCase<DeviceHalf> test(GetParam(), Dtype::kFloat16, 3);
  RunEmulated(test, 1);
  EXPECT_LE(test.Error(), 2e-3);
}

// A missing barrier makes the result depend on the order in which threads run.
TEST_P(KaoEmulated, DoesNotDependOnTheOrderOfThreads) {
  KaoTestCase<float> first(GetParam(), Dtype::kFloat32, 4);
  RunEmulated(first, 1);
  KaoTestCase<float> again(GetParam(), Dtype::kFloat32, 4);
  RunEmulated(again, 2);
  EXPECT_TRUE(SameBits(first.out(), again.out()));
}

TEST_P(KaoEmulated, ASampleDoesNotDependOnItsBatchOrPadding) {
  KaoTestCase<float> test(GetParam(), Dtype::kFloat32, 5);
  RunEmulated(test, 1);
  for (int64_t b = 0; b < GetParam().batch; ++b) {
    KaoTestCase<float> alone = test.Alone(b);
    if (alone.positions() == 0) continue;
    RunEmulated(alone, 1);
    EXPECT_TRUE(test.Holds(alone, b)) << "sample " << b;
  }
}

INSTANTIATE_TEST_SUITE_P(Small, KaoEmulated, testing::ValuesIn(KaoTestConfigs()));

// Several blocks of positions and chunks of channels in every kernel.
INSTANTIATE_TEST_SUITE_P(Large, KaoEmulated,
                         testing::Values(KaoTestConfig{.kind = KaoKind::kAverageQueries,
                                                       .channels = 3,
                                                       .key_channels = 3,
                                                       .value_channels = 3,
                                                       .extent = {30, 41},
                                                       .residual = true},
                                         KaoTestConfig{.kind = KaoKind::kAverageQueries,
                                                       .channels = 40,
                                                       .key_channels = 40,
                                                       .value_channels = 40,
                                                       .extent = {7, 9},
                                                       .residual = true,
                                                       .memory = KaoMemory::kChannelsLast}));

}  // namespace
}  // namespace saccade::kernels
