// Compares the CUDA kernels of sao.cuh, compiled by g++ and run on the CPU, with the formulas in float64.
#include "kernels/sao/sao.cuh"

#include <gtest/gtest.h>

#include "kernels/sao/sao_testing.h"

namespace saccade::kernels {
namespace {

template <typename T>
void RunEmulated(SaoTestCase<T>& test, uint64_t seed) {
  const SaoProblem problem = test.Problem();
  ASSERT_TRUE(SaoCudaFits(problem));
  std::vector<float> workspace(SaoCuda(problem, nullptr).FloatsOfWorkspace(),
                               std::numeric_limits<float>::quiet_NaN());
  RunSaoCuda<T>(problem, workspace.data(),
                [&](auto* kernel, unsigned x, unsigned y, int threads, size_t shared, const SaoCuda& run) {
                  emulator::Launch({.grid = dim3(x, y),
                                    .block = dim3(static_cast<unsigned>(threads)),
                                    .shared_bytes = shared,
                                    .seed = seed},
                                   [&] { kernel(run); });
                });
}

class SaoEmulated : public testing::TestWithParam<SaoTestConfig> {};

TEST_P(SaoEmulated, MatchesTheFormulasInFloat32) {
  SaoTestCase<float> test(GetParam(), 1);
  RunEmulated(test, 1);
  EXPECT_LE(test.Error(), 1e-6);
}

TEST_P(SaoEmulated, MatchesTheFormulasInBFloat16) {
  SaoTestCase<DeviceBFloat16> test(GetParam(), 2);
  RunEmulated(test, 1);
  EXPECT_LE(test.Error(), 1e-2);
}

TEST_P(SaoEmulated, MatchesTheFormulasInFloat16) {
  SaoTestCase<DeviceHalf> test(GetParam(), 3);
  RunEmulated(test, 1);
  EXPECT_LE(test.Error(), 2e-3);
}

// A missing barrier makes the result depend on the order in which threads run.
TEST_P(SaoEmulated, DoesNotDependOnTheOrderOfThreads) {
  SaoTestCase<float> first(GetParam(), 4);
  RunEmulated(first, 1);
  SaoTestCase<float> again(GetParam(), 4);
  RunEmulated(again, 2);
  EXPECT_TRUE(SameBits(first.out(), again.out()));
}

INSTANTIATE_TEST_SUITE_P(Configs, SaoEmulated, testing::ValuesIn(SaoTestConfigs()));

TEST(SaoEmulatedTest, ManySplits) {
  // More tiles than splits, so that each block processes several tiles.
  SaoTestCase<float> test({.channels = 2, .heads = 2, .extent = {91, 91}}, 5);
  ASSERT_GT(test.positions(), SaoCuda::kTile * SaoCuda::kMaxSplits);
  RunEmulated(test, 1);
  EXPECT_LE(test.Error(), 1e-6);
}

}  // namespace
}  // namespace saccade::kernels
