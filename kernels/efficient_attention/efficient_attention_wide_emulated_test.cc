// Compares the tiled kernels of efficient attention for maps of more than 256 channels, compiled by g++ and
// run on the CPU, with the formulas in float64.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/device/testing/emulated_test.h"
#include "kernels/efficient_attention/efficient_attention_testing.h"
#include "kernels/efficient_attention/efficient_attention_tiled.cuh"

namespace saccade::kernels {
namespace {

struct EaWideKernels {
  using Config = EaTestConfig;
  template <typename T>
  using Case = EaTestCase<T>;

  static bool Fits(const EfficientAttentionProblem& problem) {
    return EaTiledFits(problem) && EaTiled(problem, nullptr).wide;
  }
  static int64_t Floats(const EfficientAttentionProblem& problem) {
    return EaTiled(problem, nullptr).FloatsOfWorkspace();
  }
  template <typename T>
  static void Run(const EfficientAttentionProblem& problem, float* workspace, const EmulatedLaunch& launch) {
    RunEaTiled<T>(EaTiled(problem, workspace), launch);
  }
};
using EaWideEmulated = EmulatedTest<EaWideKernels>;
using EaWideEmulatedSome = EmulatedTest<EaWideKernels>;

// With several heads, float32 maps use the attention core.
TEST_P(EaWideEmulated, MatchesTheFormulasInFloat32) {
  if (GetParam().heads == 1) MatchesTheFormulas<float>();
}
TEST_P(EaWideEmulated, MatchesTheFormulasInBFloat16) { MatchesTheFormulas<DeviceBFloat16>(); }
TEST_P(EaWideEmulatedSome, MatchesTheFormulasInFloat16) { MatchesTheFormulas<DeviceHalf>(); }
TEST_P(EaWideEmulatedSome, DoesNotDependOnTheOrderOfThreads) {
  DoesNotDependOnTheOrderOfThreads<DeviceHalf>();
}

// Slabs that are not full, padding, an empty sample, 16-byte copies and single ones, several heads, results
// that are narrower or wider than the map, and a result without a projection.
std::vector<EaTestConfig> Configs() {
  std::vector<EaTestConfig> configs;
  for (const bool channels_last : {false, true}) {
    const auto add = [&](EaTestConfig config) {
      config.channels_last = channels_last;
      configs.push_back(config);
    };
    add({.batch = 3,
         .channels = 320,
         .keys = 24,
         .values = 20,
         .out = 320,
         .extent = {8, 16},
         .residual = true,
         .valid = {7, 13, 8, 16, 0, 5}});
    add({.channels = 257, .keys = 3, .values = 5, .extent = {3, 23}, .softmax = false});
    add({.batch = 2,
         .channels = 512,
         .keys = 64,
         .values = 64,
         .out = 512,
         .heads = 4,
         .extent = {9, 16},
         .residual = true,
         .valid = {9, 16, 5, 9}});
    add({.channels = 40, .keys = 16, .values = 8, .out = 520, .heads = 2, .extent = {4, 5, 7}});
    add({.channels = 300, .keys = 8, .values = 16, .out = 24, .extent = {70}, .softmax = false});
  }
  return configs;
}
INSTANTIATE_TEST_SUITE_P(Configs, EaWideEmulated, testing::ValuesIn(Configs()));
INSTANTIATE_TEST_SUITE_P(Configs, EaWideEmulatedSome, testing::ValuesIn(EveryThirdUnlessLong(Configs())));

template <typename T>
void Has2048Channels() {
  for (const bool channels_last : {false, true}) {
    EaTestCase<T> test({.channels = 2048,
                        .keys = 16,
                        .values = 8,
                        .out = 2048,
                        .extent = {6, 16},
                        .residual = true,
                        .channels_last = channels_last,
                        .valid = {5, 15}},
                       3);
    RunEmulated<EaWideKernels, T>(test.Problem(), 1);
    EXPECT_LE(test.Error(), kMaxEmulatedError<T>);
  }
}
TEST(EaWideEmulatedTest, Has2048ChannelsInFloat32) { Has2048Channels<float>(); }
TEST(EaWideEmulatedTest, Has2048ChannelsInBFloat16) { Has2048Channels<DeviceBFloat16>(); }

// More tiles than ranges, and blocks of several ranges.
struct WideFewBlocks : EaWideKernels {
  template <typename T>
  static void Run(const EfficientAttentionProblem& problem, float* workspace, const EmulatedLaunch& launch) {
    EaTiled run(problem, workspace);
    ASSERT_EQ(run.slots, 3);
    run.max_splits = 2;
    run.blocks = run.out_blocks = 1;
    RunEaTiled<T>(run, launch);
  }
};
template <typename T>
void BlocksHaveSeveralRanges() {
  EaTestCase<T> test(
      {.channels = 260, .keys = 5, .values = 4, .out = 260, .extent = {3, 64}, .residual = true}, 3);
  RunEmulated<WideFewBlocks, T>(test.Problem(), 2);
  EXPECT_LE(test.Error(), kMaxEmulatedError<T>);
}
TEST(EaWideEmulatedTest, BlocksOfSeveralRanges) { BlocksHaveSeveralRanges<DeviceHalf>(); }
TEST(EaWideEmulatedTest, BlocksOfSeveralRangesInFloat32) { BlocksHaveSeveralRanges<float>(); }

// A batch whose workspace would be too large is computed in groups of samples.
struct OneByOne : EaWideKernels {
  template <typename T>
  static void Run(const EfficientAttentionProblem& problem, float* workspace, const EmulatedLaunch& launch) {
    EaTiled run(problem, workspace);
    run.group = 1;
    RunEaTiled<T>(run, launch);
  }
};

// A sample's bits depend neither on its group, its batch nor its padding.
template <typename T>
void APaddedSampleHasTheBitsItHasAlone() {
  for (const bool channels_last : {false, true}) {
    const EaTestConfig config = {.batch = 3,
                                 .channels = 264,
                                 .keys = 8,
                                 .values = 8,
                                 .out = 264,
                                 .extent = {8, 24},
                                 .residual = true,
                                 .channels_last = channels_last,
                                 .valid = {8, 24, 3, 3, 7, 21}};
    EaTestCase<T> batch(config, 9);
    RunEmulated<EaWideKernels, T>(batch.Problem(), 1);
    EXPECT_LE(batch.Error(), kMaxEmulatedError<T>);
    EaTestCase<T> grouped(config, 9);
    RunEmulated<OneByOne, T>(grouped.Problem(), 1);
    EXPECT_TRUE(SameBits(batch.out(), grouped.out()));

    EaTestCase<T> alone(config, 9);
    EfficientAttentionProblem problem = alone.Problem();
    const int64_t before = 2 * problem.x.batch_stride;
    problem.batch = 1;
    problem.extent.valid = nullptr;
    problem.extent.size[1] = 7;
    problem.extent.size[2] = 21;
    problem.x.data = static_cast<const T*>(problem.x.data) + before;
    problem.out.data = static_cast<T*>(problem.out.data) + before;
    RunEmulated<EaWideKernels, T>(problem, 3);
    int compared = 0;
    for (size_t i = static_cast<size_t>(before); i < alone.out().size(); ++i) {
      if (std::isnan(static_cast<float>(alone.out()[i]))) continue;
      EXPECT_EQ(__builtin_memcmp(&alone.out()[i], &batch.out()[i], sizeof(T)), 0);
      ++compared;
    }
    EXPECT_EQ(compared, 7 * 21 * 264);
  }
}
TEST(EaWideEmulatedTest, APaddedSampleInABatchHasTheBitsItHasAlone) {
  APaddedSampleHasTheBitsItHasAlone<DeviceHalf>();
}
TEST(EaWideEmulatedTest, APaddedSampleInABatchHasTheBitsItHasAloneInFloat32) {
  APaddedSampleHasTheBitsItHasAlone<float>();
}

template <typename T>
void OffsetsHave64Bits() {
  for (const bool channels_last : {false, true}) {
    EaTestCase<T> test({.batch = 2,
                        .channels = 264,
                        .keys = 3,
                        .values = 4,
                        .out = 264,
                        .extent = {5, 16},
                        .residual = true,
                        .channels_last = channels_last,
                        .valid = {5, 16, 4, 13}},
                       5);
    FarMapsGiveTheSameBits<EaWideKernels, T>(test.Problem(),
                                             [](FarMaps<T>& maps, EfficientAttentionProblem& p) {
                                               maps.Move(p.x, p.channels, p.extent);
                                               maps.MoveResult(p.out, p.out_channels, p.extent);
                                             });
  }
}
TEST(EaWideEmulatedTest, OffsetsHave64BitsInFloat32) { OffsetsHave64Bits<float>(); }
TEST(EaWideEmulatedTest, OffsetsHave64BitsInBFloat16) { OffsetsHave64Bits<DeviceBFloat16>(); }

TEST(EaWideEmulatedTest, TheWorkspaceOfLargeBatchesIsBounded) {
  EfficientAttentionProblem p;
  p.batch = 8;
  p.extent.size[1] = p.extent.size[2] = 256;
  p.dtype = Dtype::kBFloat16;
  p.channels = p.out_channels = 2048;
  p.key_channels = p.value_channels = 64;
  ASSERT_TRUE(EaWideKernels::Fits(p));
  EXPECT_EQ(EaTiled(p, nullptr).group, 1);
  EXPECT_LE(EaWideKernels::Floats(p), EaTiled::kMaxWideFloats + (1 << 18));
  p.extent.size[1] = p.extent.size[2] = 32;
  p.batch = 1000;
  EXPECT_GT(EaTiled(p, nullptr).group, 4);
  EXPECT_LE(EaWideKernels::Floats(p), EaTiled::kMaxWideFloats + (1 << 18));
}

}  // namespace
}  // namespace saccade::kernels
