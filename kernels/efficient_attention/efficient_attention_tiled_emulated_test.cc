// Compares the tiled kernels of efficient attention, compiled by g++ and run on the CPU, with the formulas in
// float64.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "kernels/device/testing/emulated_test.h"
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
using EaTiledEmulatedSmall = EmulatedTest<EaTiledKernels>;

// With several heads, float32 maps use the attention core.
TEST_P(EaTiledEmulatedSome, MatchesTheFormulasInFloat32) {
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
INSTANTIATE_TEST_SUITE_P(Configs, EaTiledEmulatedSome, testing::ValuesIn(EveryThirdUnlessLong(Configs())));

// The smallest problems that reach what the threads of the tiled kernels do together: 16-byte copies in both
// layouts, several tiles, and more ranges than a warp has lanes. kernels/emulator/faults_test.py puts faults
// into these and into the tests of padded samples.
TEST_P(EaTiledEmulatedSmall, MatchesTheFormulas) {
  MatchesTheFormulas<float>();
  MatchesTheFormulas<DeviceHalf>();
}
std::vector<EaTestConfig> SmallConfigs() {
  std::vector<EaTestConfig> configs = {
      {.channels = 4, .keys = 3, .values = 4, .extent = {56, 57}, .residual = true, .valid = {56, 54}}};
  for (const bool channels_last : {false, true}) {
    configs.push_back({.batch = 2,
                       .channels = 16,
                       .keys = 8,
                       .values = 8,
                       .out = 16,
                       .extent = {6, 24},
                       .residual = true,
                       .channels_last = channels_last,
                       .valid = {6, 17, 5, 16}});
  }
  return configs;
}
INSTANTIATE_TEST_SUITE_P(Configs, EaTiledEmulatedSmall, testing::ValuesIn(SmallConfigs()));

// Coefficients depend on the differences of logits alone, so logits that are all large must not make them
// less exact. Every logit is exact here, because the map and the weights have few bits.
TEST(EaTiledEmulatedTest, LargeLogitsAreAsExactAsTheirDifferencesInFloat32) {
  constexpr int64_t kChannels = 4, kKeys = 8, kValues = 3, kPositions = 150;
  std::mt19937 random(5);
  const auto eighths = [&](int most) {
    return static_cast<float>(static_cast<int>(random() % (2 * most + 1)) - most) / 8;
  };
  std::vector<float> x(kChannels * kPositions), out(kValues * kPositions);
  std::vector<float> key(kKeys * kChannels), query(kKeys * kChannels), value(kValues * kChannels);
  // The first channel makes all logits large and is no value.
  for (int64_t i = 0; i < kChannels * kPositions; ++i) x[i] = i < kPositions ? 64 : eighths(16);
  for (int64_t i = 0; i < kKeys * kChannels; ++i) {
    key[i] = i % kChannels == 0 ? 4 : eighths(8);
    query[i] = i % kChannels == 0 ? 4 : eighths(8);
  }
  for (int64_t i = 0; i < kValues * kChannels; ++i) value[i] = i % kChannels == 0 ? 0 : eighths(8);
  EfficientAttentionProblem p;
  p.batch = 1;
  p.extent = RowExtent(kPositions);
  p.dtype = Dtype::kFloat32;
  p.channels = kChannels;
  p.key_channels = kKeys;
  p.value_channels = p.out_channels = kValues;
  p.x = {x.data(), kChannels * kPositions, kPositions, {0, 0, 1}};
  p.out = {out.data(), kValues * kPositions, kPositions, {0, 0, 1}};
  p.key_weight = key.data();
  p.query_weight = query.data();
  p.value_weight = value.data();
  RunEmulated<EaTiledKernels, float>(p, 1);

  const auto exponential = [&](const std::vector<float>& weight, int64_t j, int64_t n) {
    double logit = -64.0 * 4;
    for (int64_t c = 0; c < kChannels; ++c)
      logit += static_cast<double>(weight[j * kChannels + c]) * x[c * kPositions + n];
    return std::exp(logit);
  };
  double context[kKeys][kValues] = {};
  for (int64_t j = 0; j < kKeys; ++j) {
    double total = 0;
    for (int64_t n = 0; n < kPositions; ++n) total += exponential(key, j, n);
    for (int64_t n = 0; n < kPositions; ++n) {
      const double coefficient = exponential(key, j, n) / total;
      for (int64_t i = 0; i < kValues * kChannels; ++i)
        context[j][i / kChannels] += coefficient * value[i] * x[i % kChannels * kPositions + n];
    }
  }
  double difference = 0, norm = 0;
  for (int64_t n = 0; n < kPositions; ++n) {
    double total = 0;
    for (int64_t j = 0; j < kKeys; ++j) total += exponential(query, j, n);
    for (int64_t v = 0; v < kValues; ++v) {
      double want = 0;
      for (int64_t j = 0; j < kKeys; ++j) want += exponential(query, j, n) / total * context[j][v];
      const double off = out[v * kPositions + n] - want;
      difference += off * off;
      norm += want * want;
    }
  }
  EXPECT_LE(std::sqrt(difference / norm), kMaxEmulatedError<float>);
}

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
template <typename T>
void APaddedSampleHasTheBitsItHasAlone(int64_t heads) {
  for (const bool channels_last : {false, true}) {
    const EaTestConfig config = {.batch = 3,
                                 .channels = 24,
                                 .keys = 16,
                                 .values = 8,
                                 .out = 24,
                                 .heads = heads,
                                 .extent = {16, 24},
                                 .residual = true,
                                 .channels_last = channels_last,
                                 .valid = {16, 24, 0, 3, 15, 21}};
    EaTestCase<T> batch(config, 9);
    RunEmulated<FewBlocks, T>(batch.Problem(), 1);
    EXPECT_LE(batch.Error(), kMaxEmulatedError<T>);

    EaTestCase<T> alone(config, 9);
    EfficientAttentionProblem problem = alone.Problem();
    const int64_t before = 2 * problem.x.batch_stride;
    problem.batch = 1;
    problem.extent.valid = nullptr;
    problem.extent.size[1] = 15;
    problem.extent.size[2] = 21;
    problem.x.data = static_cast<const T*>(problem.x.data) + before;
    problem.out.data = static_cast<T*>(problem.out.data) + before;
    RunEmulated<EaTiledKernels, T>(problem, 3);
    int compared = 0;
    for (size_t i = static_cast<size_t>(before); i < alone.out().size(); ++i) {
      if (std::isnan(static_cast<float>(alone.out()[i]))) continue;
      EXPECT_EQ(__builtin_memcmp(&alone.out()[i], &batch.out()[i], sizeof(T)), 0);
      ++compared;
    }
    EXPECT_EQ(compared, 15 * 21 * 24);
  }
}
TEST(EaTiledEmulatedTest, APaddedSampleInABatchHasTheBitsItHasAlone) {
  APaddedSampleHasTheBitsItHasAlone<DeviceHalf>(2);
}
TEST(EaTiledEmulatedTest, APaddedSampleInABatchHasTheBitsItHasAloneInFloat32) {
  APaddedSampleHasTheBitsItHasAlone<float>(1);
}

// A thread copies several rows of more than 16 channels.
template <typename T>
void OffsetsHave64Bits() {
  for (const bool channels_last : {false, true}) {
    EaTestCase<T> test({.batch = 2,
                        .channels = 24,
                        .keys = 3,
                        .values = 4,
                        .out = 24,
                        .extent = {5, 16},
                        .residual = true,
                        .channels_last = channels_last,
                        .valid = {5, 16, 4, 13}},
                       5);
    FarMapsGiveTheSameBits<EaTiledKernels, T>(test.Problem(),
                                              [](FarMaps<T>& maps, EfficientAttentionProblem& p) {
                                                maps.Move(p.x, p.channels, p.extent);
                                                maps.MoveResult(p.out, p.out_channels, p.extent);
                                              });
  }
}
TEST(EaTiledEmulatedTest, OffsetsHave64BitsInFloat32) { OffsetsHave64Bits<float>(); }
TEST(EaTiledEmulatedTest, OffsetsHave64BitsInBFloat16) { OffsetsHave64Bits<DeviceBFloat16>(); }

// Notes the most dynamic shared memory that a launch asks for, and launches nothing.
struct MostSharedBytes {
  template <typename Argument>
  void operator()(void (*)(Argument), unsigned /*blocks*/, unsigned /*blocks_y*/, int /*threads*/,
                  size_t bytes, const Argument& /*argument*/) const {
    if (bytes > *most) *most = bytes;
  }
  template <typename Argument>
  void operator()(void (*)(Argument), int64_t /*blocks*/, int /*threads*/,
                  const Argument& /*argument*/) const {}
  size_t* most;
};

template <typename T>
size_t MostSharedBytesOf(int64_t channels) {
  size_t most = 0;
  for (const bool channels_last : {false, true}) {
    EaTestCase<T> test({.channels = channels,
                        .keys = 16,
                        .values = 16,
                        .out = channels,
                        .extent = {2, 2},
                        .channels_last = channels_last},
                       1);
    RunEaTiled<T>(EaTiled(test.Problem(), nullptr), MostSharedBytes{&most});
  }
  return most;
}

TEST(EaTiledEmulatedTest, AsksForTheSharedMemoryOfItsWidth) {
  constexpr size_t kOfL4 = 99 << 10;
  for (const int64_t width : {64, 128, 256}) {
    EXPECT_EQ(MostSharedBytesOf<float>(width), EaTiledSharedBytes(Dtype::kFloat32, width));
    EXPECT_EQ(MostSharedBytesOf<DeviceBFloat16>(width), EaTiledSharedBytes(Dtype::kBFloat16, width));
  }
  EXPECT_LE(EaTiledSharedBytes(Dtype::kFloat32, 64), kOfL4);
  EXPECT_LE(EaTiledSharedBytes(Dtype::kBFloat16, 128), kOfL4);
  EXPECT_GT(EaTiledSharedBytes(Dtype::kBFloat16, 256), kOfL4);
  EXPECT_EQ(MostSharedBytesOf<DeviceBFloat16>(512), EaTiledSharedBytes(Dtype::kBFloat16, 512));
  EXPECT_EQ(MostSharedBytesOf<float>(512), EaTiledSharedBytes(Dtype::kFloat32, 512));
  EXPECT_LE(EaTiledSharedBytes(Dtype::kBFloat16, 2048), kOfL4);
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
  EXPECT_TRUE(with([](auto& p) { p.channels = 2048; }));
  EXPECT_TRUE(with([](auto& p) { p.out_channels = 2048; }));
  EXPECT_FALSE(with([](auto& p) { p.channels = 2056; }));
  EXPECT_FALSE(with([](auto& p) { p.out_channels = 2056; }));
  EXPECT_TRUE(with([](auto& p) {
    p.dtype = Dtype::kFloat32;
    p.heads = 1;
    p.channels = 2048;
  }));
  EXPECT_FALSE(with([](auto& p) { p.key_channels = 128; }));
  EXPECT_FALSE(with([](auto& p) { p.heads = 16; }));
  EXPECT_FALSE(with([](auto& p) { p.channels = 0; }));
}

}  // namespace
}  // namespace saccade::kernels
