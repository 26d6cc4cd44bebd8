// Compares the tiled kernels of efficient attention, compiled by g++ and run on the CPU, with the formulas in
// float64.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "kernels/device/emulated_test.h"
#include "kernels/efficient_attention/efficient_attention_testing.h"
#include "kernels/efficient_attention/efficient_attention_tiled.cuh"

namespace saccade::kernels {
namespace {

struct EaTiledKernels {
  using Config = EaTestConfig;
  template <typename T>
  using Case = EaTestCase<T>;

  static bool Fits(const EfficientAttentionProblem& problem) { return EaTiledFits(problem); }
  static int64_t Floats(const EfficientAttentionProblem& problem) {
    return EaTiled(problem, nullptr).FloatsOfWorkspace();
  }
  template <typename T>
  static void Run(const EfficientAttentionProblem& problem, float* workspace, const EmulatedLaunch& launch) {
    RunEaTiled<T>(EaTiled(problem, workspace), launch);
  }
};
using EaTiledEmulated = EmulatedTest<EaTiledKernels>;
using EaTiledEmulatedSome = EmulatedTest<EaTiledKernels>;

// With several heads, float32 maps use the attention core.
TEST_P(EaTiledEmulated, MatchesTheFormulasInFloat32) {
  if (GetParam().heads == 1) MatchesTheFormulas<float>();
}
TEST_P(EaTiledEmulated, MatchesTheFormulasInBFloat16) { MatchesTheFormulas<DeviceBFloat16>(); }
TEST_P(EaTiledEmulatedSome, MatchesTheFormulasInFloat16) { MatchesTheFormulas<DeviceHalf>(); }
TEST_P(EaTiledEmulatedSome, DoesNotDependOnTheOrderOfThreads) {
  DoesNotDependOnTheOrderOfThreads<DeviceHalf>();
}

// The shared configurations that the tiled kernels take, and others of their own: 16-byte copies in both
// layouts, tails, every width, full and padded keys, heads of several groups of 8 keys.
std::vector<EaTestConfig> Configs() {
  std::vector<EaTestConfig> configs;
  for (const EaTestConfig& config : EaTestConfigs()) {
    const int64_t head_keys = config.keys / config.heads;
    if (config.channels > 0 && (config.heads == 1 || head_keys % 8 == 0)) configs.push_back(config);
  }
  for (const bool channels_last : {false, true}) {
    for (const bool softmax : {false, true}) {
      const auto add = [&](EaTestConfig config) {
        config.channels_last = channels_last;
        config.softmax = softmax;
        configs.push_back(config);
      };
      add({.channels = 32, .keys = 64, .values = 64, .out = 32, .extent = {8, 24}, .residual = true});
      add({.batch = 2, .channels = 40, .keys = 48, .values = 24, .out = 72, .heads = 3, .extent = {10, 16}});
      add({.channels = 96, .keys = 32, .values = 96, .heads = 4, .extent = {5, 16}, .residual = true});
      add({.batch = 2,
           .channels = 136,
           .keys = 24,
           .values = 20,
           .out = 136,
           .extent = {8, 16},
           .residual = true,
           .valid = {7, 13, 8, 16}});
    }
  }
  return configs;
}
INSTANTIATE_TEST_SUITE_P(Configs, EaTiledEmulated, testing::ValuesIn(Configs()));
INSTANTIATE_TEST_SUITE_P(Configs, EaTiledEmulatedSome, testing::ValuesIn(EveryThird(Configs())));

// More tiles than ranges: a range has several tiles.
TEST(EaTiledEmulatedTest, RangesOfSeveralTiles) {
  const EaTestConfig config = {
      .channels = 8, .keys = 5, .values = 4, .out = 8, .extent = {EaTiled::kBlocks + 3, 64}};
  EaTestCase<DeviceBFloat16> test(config, 3);
  RunEmulated<EaTiledKernels, DeviceBFloat16>(test.Problem(), 2);
  EXPECT_LE(test.Error(), kMaxEmulatedError<DeviceBFloat16>);
}

// A large batch has fewer blocks for each sample, so that a block has several ranges.
struct FewBlocks : EaTiledKernels {
  template <typename T>
  static void Run(const EfficientAttentionProblem& problem, float* workspace, const EmulatedLaunch& launch) {
    EaTiled run(problem, workspace);
    ASSERT_EQ(run.blocks, 6);
    run.blocks = 2;
    RunEaTiled<T>(run, launch);
  }
};

// A sample's bits must depend neither on its batch, which decides how many ranges a block has, nor on its
// padding, which decides how its tiles are copied.
TEST(EaTiledEmulatedTest, APaddedSampleInABatchHasTheBitsItHasAlone) {
  for (const bool channels_last : {false, true}) {
    const EaTestConfig config = {.batch = 3,
                                 .channels = 24,
                                 .keys = 16,
                                 .values = 8,
                                 .out = 24,
                                 .heads = 2,
                                 .extent = {16, 24},
                                 .residual = true,
                                 .channels_last = channels_last,
                                 .valid = {16, 24, 0, 3, 15, 21}};
    EaTestCase<DeviceHalf> batch(config, 9);
    RunEmulated<FewBlocks, DeviceHalf>(batch.Problem(), 1);
    EXPECT_LE(batch.Error(), kMaxEmulatedError<DeviceHalf>);

    EaTestCase<DeviceHalf> alone(config, 9);
    EfficientAttentionProblem problem = alone.Problem();
    const int64_t before = 2 * problem.x.batch_stride;
    problem.batch = 1;
    problem.extent.valid = nullptr;
    problem.extent.size[1] = 15;
    problem.extent.size[2] = 21;
    problem.x.data = static_cast<const DeviceHalf*>(problem.x.data) + before;
    problem.out.data = static_cast<DeviceHalf*>(problem.out.data) + before;
    RunEmulated<EaTiledKernels, DeviceHalf>(problem, 3);
    int compared = 0;
    for (size_t i = static_cast<size_t>(before); i < alone.out().size(); ++i) {
      if (std::isnan(static_cast<float>(alone.out()[i]))) continue;
      EXPECT_EQ(std::memcmp(&alone.out()[i], &batch.out()[i], sizeof(DeviceHalf)), 0);
      ++compared;
    }
    EXPECT_EQ(compared, 15 * 21 * 24);
  }
}

TEST(EaTiledEmulatedTest, TakesWhatFitsItsTiles) {
  EaTestCase<DeviceHalf> test(
      {.channels = 256, .keys = 64, .values = 64, .out = 256, .heads = 8, .extent = {2, 2}}, 1);
  const EfficientAttentionProblem fits = test.Problem();
  EXPECT_TRUE(EaTiledFits(fits));
  const auto with = [&](auto change) {
    EfficientAttentionProblem p = fits;
    change(p);
    return EaTiledFits(p);
  };
  EXPECT_FALSE(with([](auto& p) { p.dtype = Dtype::kFloat32; }));
  EXPECT_TRUE(with([](auto& p) {
    p.dtype = Dtype::kFloat32;
    p.heads = 1;
  }));
  EXPECT_FALSE(with([](auto& p) { p.channels = 264; }));
  EXPECT_FALSE(with([](auto& p) { p.out_channels = 264; }));
  EXPECT_FALSE(with([](auto& p) { p.key_channels = 128; }));
  EXPECT_FALSE(with([](auto& p) { p.heads = 16; }));
  EXPECT_FALSE(with([](auto& p) { p.channels = 0; }));
}

}  // namespace
}  // namespace saccade::kernels
