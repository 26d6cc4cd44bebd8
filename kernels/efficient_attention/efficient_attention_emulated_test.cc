// Compares the CUDA kernels of efficient_attention.cuh, compiled by g++ and run on the CPU, with the formulas
// in float64.
#include "kernels/efficient_attention/efficient_attention.cuh"

#include <gtest/gtest.h>

#include "kernels/device/testing/emulated_test.h"
#include "kernels/efficient_attention/efficient_attention_testing.h"

namespace saccade::kernels {
namespace {

struct EaKernels {
  using Config = EaTestConfig;
  template <typename T>
  using Case = EaTestCase<T>;

  static bool Fits(const EfficientAttentionProblem& problem) { return EaCudaFits(problem); }
  static int64_t Floats(const EfficientAttentionProblem& problem) {
    return EaCuda(problem, nullptr).FloatsOfWorkspace();
  }
  template <typename T>
  static void Run(const EfficientAttentionProblem& problem, float* workspace, const EmulatedLaunch& launch) {
    RunEaCuda<T>(problem, workspace, launch);
  }
};
using EaEmulated = EmulatedTest<EaKernels>;
using EaEmulatedSome = EmulatedTest<EaKernels>;

TEST_P(EaEmulated, MatchesTheFormulasInFloat32) { MatchesTheFormulas<float>(); }
TEST_P(EaEmulated, MatchesTheFormulasInBFloat16) { MatchesTheFormulas<DeviceBFloat16>(); }
TEST_P(EaEmulatedSome, MatchesTheFormulasInFloat16) { MatchesTheFormulas<DeviceHalf>(); }
TEST_P(EaEmulatedSome, DoesNotDependOnTheOrderOfThreads) { DoesNotDependOnTheOrderOfThreads<float>(); }

INSTANTIATE_TEST_SUITE_P(Configs, EaEmulated, testing::ValuesIn(EaTestConfigs()));
INSTANTIATE_TEST_SUITE_P(Configs, EaEmulatedSome, testing::ValuesIn(EveryThird(EaTestConfigs())));

TEST(EaEmulatedTest, WiderThanABlock) {
  // More than 256 channels: the logits go through the workspace.
  EaTestCase<float> test({.channels = 260, .keys = 6, .values = 4, .out = 260, .heads = 2, .extent = {9, 11}},
                         5);
  RunEmulated<EaKernels, float>(test.Problem(), 1);
  EXPECT_LE(test.Error(), kMaxEmulatedError<float>);
}

// The attention core takes 32 channels at a time, and 64 of values.
TEST(EaEmulatedTest, OffsetsHave64Bits) {
  const EaTestConfig module = {.batch = 2,
                               .channels = 72,
                               .keys = 4,
                               .values = 6,
                               .out = 72,
                               .heads = 2,
                               .extent = {5, 16},
                               .residual = true,
                               .valid = {5, 16, 4, 13}};
  const EaTestConfig bare = {
      .batch = 2, .channels = 0, .keys = 4, .values = 6, .heads = 2, .extent = {5, 16}};
  for (EaTestConfig config : {module, bare}) {
    for (const bool channels_last : {false, true}) {
      config.channels_last = channels_last;
      EaTestCase<DeviceHalf> test(config, 5);
      FarMapsGiveTheSameBits<EaKernels, DeviceHalf>(
          test.Problem(), [](FarMaps<DeviceHalf>& maps, EfficientAttentionProblem& p) {
            if (p.channels > 0) {
              maps.Move(p.x, p.channels, p.extent);
            } else {
              maps.Move(p.q, p.key_channels, p.extent);
              maps.Move(p.k, p.key_channels, p.extent);
              maps.Move(p.v, p.value_channels, p.extent);
            }
            maps.MoveResult(p.out, p.out_channels, p.extent);
          });
    }
  }
}

}  // namespace
}  // namespace saccade::kernels
