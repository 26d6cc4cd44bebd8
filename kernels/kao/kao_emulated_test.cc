// Compares the CUDA kernels of kao.cuh, compiled by g++ and run on the CPU, with the formulas in float64.
#include <gtest/gtest.h>

#include "kernels/device/testing/emulated_test.h"
#include "kernels/kao/kao.cuh"
#include "kernels/kao/kao_testing.h"

namespace saccade::kernels {
namespace {

struct KaoKernels {
  using Config = KaoTestConfig;
  template <typename T>
  using Case = KaoTestCase<T>;

  static bool Fits(const KaoProblem& problem) { return KaoCudaFits(problem); }
  static int64_t Floats(const KaoProblem& problem) { return KaoCuda(problem, nullptr).FloatsOfWorkspace(); }
  template <typename T>
  static void Run(const KaoProblem& problem, float* workspace, const EmulatedLaunch& launch) {
    RunKaoCuda<T>(problem, workspace, launch);
  }
};
using KaoEmulated = EmulatedTest<KaoKernels>;

TEST_P(KaoEmulated, MatchesTheFormulasInFloat32) { MatchesTheFormulas<float>(); }
TEST_P(KaoEmulated, MatchesTheFormulasInBFloat16) { MatchesTheFormulas<DeviceBFloat16>(); }
TEST_P(KaoEmulated, MatchesTheFormulasInFloat16) { MatchesTheFormulas<DeviceHalf>(); }
TEST_P(KaoEmulated, DoesNotDependOnTheOrderOfThreads) { DoesNotDependOnTheOrderOfThreads<float>(); }

TEST_P(KaoEmulated, ASampleDoesNotDependOnItsBatchOrPadding) {
  KaoTestCase<float> test(GetParam(), 5);
  Run(test);
  for (int64_t b = 0; b < GetParam().batch; ++b) {
    KaoTestCase<float> alone = test.Alone(b);
    if (alone.positions() == 0) continue;
    Run(alone);
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
                                                       .memory = KaoMemory::kChannelsLast},
                                         // More columns than the lanes of a warp hold.
                                         KaoTestConfig{.kind = KaoKind::kAverageQueries,
                                                       .channels = 2,
                                                       .key_channels = 2,
                                                       .value_channels = 2,
                                                       .extent = {9, 150}}));

TEST(KaoEmulatedTest, OffsetsHave64Bits) {
  const KaoTestConfig module = {.batch = 2,
                                .heads = 2,
                                .channels = 6,
                                .key_channels = 6,
                                .value_channels = 6,
                                .extent = {5, 16},
                                .weights = "qkvQVcsh",
                                .residual = true,
                                .valid = {5, 16, 4, 13}};
  KaoTestConfig bare = module;
  bare.value_channels = 4;
  bare.module = false;
  bare.weights = "c";
  bare.residual = false;
  for (KaoTestConfig config : {module, bare}) {
    for (const KaoKind kind : {KaoKind::kMapQueries, KaoKind::kAverageQueries}) {
      for (const KaoMemory memory : {KaoMemory::kContiguous, KaoMemory::kChannelsLast}) {
        config.kind = kind;
        config.memory = memory;
        KaoTestCase<float> test(config, 5);
        FarMapsGiveTheSameBits<KaoKernels, float>(test.Problem(), [](FarMaps<float>& maps, KaoProblem& p) {
          maps.Move(p.q, p.query_map_channels, p.extent);
          maps.Move(p.k, p.query_map_channels, p.extent);
          maps.Move(p.v, p.value_map_channels, p.extent);
          maps.MoveResult(p.out, p.value_channels, p.extent);
        });
      }
    }
  }
}

}  // namespace
}  // namespace saccade::kernels
