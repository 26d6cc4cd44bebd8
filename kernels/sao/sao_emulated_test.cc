// Compares the CUDA kernels of sao.cuh, compiled by g++ and run on the CPU, with the formulas in float64.
#include "kernels/sao/sao.cuh"

#include <gtest/gtest.h>

#include <cstdint>

#include "kernels/device/testing/emulated_test.h"
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

// The result is dense.
TEST(SaoEmulatedTest, OffsetsHave64Bits) {
  for (const bool module : {true, false}) {
    for (const bool channels_last : {false, true}) {
      SaoTestCase<float> test({.batch = 2,
                               .channels = 8,
                               .heads = 2,
                               .extent = {5, 16},
                               .module = module,
                               .shared = module,
                               .channels_last = channels_last,
                               .valid = {5, 16, 4, 13}},
                              5);
      const auto move = [](FarMaps<float>& maps, SaoProblem& p) {
        for (FlatMap* flat : {&p.q, &p.k, &p.v}) {
          const int64_t step = flat->position_stride;
          FeatureMap map = {
              flat->data, flat->batch_stride, flat->channel_stride, {0, p.extent.size[2] * step, step}};
          maps.Move(map, p.channels, p.extent);
          *flat = {map.data, map.batch_stride, map.channel_stride, step};
        }
      };
      FarMapsGiveTheSameDenseBits<SaoKernels, float>(test.Problem(), test.out(), move);
    }
  }
}

}  // namespace
}  // namespace saccade::kernels
