// Compares the CUDA kernels of gsa.cuh, compiled by g++ and run on the CPU, with the formulas in float64.
#include <gtest/gtest.h>

#include "kernels/device/testing/emulated_test.h"
#include "kernels/gsa/gsa.cuh"
#include "kernels/gsa/gsa_testing.h"

namespace saccade::kernels {
namespace {

struct GsaKernels {
  using Config = GsaTestConfig;
  template <typename T>
  using Case = GsaTestCase<T>;

  static bool Fits(const GsaProblem& problem) { return GsaCudaFits(problem); }
  static int64_t Floats(const GsaProblem& problem) { return GsaCuda(problem, nullptr).FloatsOfWorkspace(); }
  template <typename T>
  static void Run(const GsaProblem& problem, float* workspace, const EmulatedLaunch& launch) {
    RunGsaCuda<T>(problem, workspace, launch);
  }
};
using GsaEmulated = EmulatedTest<GsaKernels>;
using GsaEmulatedSome = EmulatedTest<GsaKernels>;

// 16-bit maps on chips without suitable tensor cores.
struct GsaKernelsWithoutMma : GsaKernels {
  template <typename T>
  static void Run(const GsaProblem& problem, float* workspace, const EmulatedLaunch& launch) {
    RunGsaCuda<T, false>(problem, workspace, launch);
  }
};
using GsaEmulatedWithoutMma = EmulatedTest<GsaKernelsWithoutMma>;

TEST_P(GsaEmulated, MatchesTheFormulasInFloat32) { MatchesTheFormulas<float>(); }
TEST_P(GsaEmulated, MatchesTheFormulasInBFloat16) { MatchesTheFormulas<DeviceBFloat16>(); }
TEST_P(GsaEmulatedSome, MatchesTheFormulasInFloat16) { MatchesTheFormulas<DeviceHalf>(); }
TEST_P(GsaEmulatedSome, DoesNotDependOnTheOrderOfThreadsInFloat32) {
  DoesNotDependOnTheOrderOfThreads<float>();
}
TEST_P(GsaEmulatedSome, DoesNotDependOnTheOrderOfThreadsInFloat16) {
  DoesNotDependOnTheOrderOfThreads<DeviceHalf>();
}
TEST_P(GsaEmulatedWithoutMma, MatchesTheFormulasInFloat16) { MatchesTheFormulas<DeviceHalf>(); }

// Lines of several tiles, ranges of several steps, heads of several blocks of channels, 16-byte vectors along
// positions and along channels.
std::vector<GsaTestConfig> LargeConfigs() {
  using enum GsaContent;
  std::vector<GsaTestConfig> configs;
  for (const bool channels_last : {false, true}) {
    const auto add = [&](GsaTestConfig config) {
      config.channels_last = channels_last;
      configs.push_back(config);
    };
    add({.batch = 2, .channels = 16, .heads = 2, .key_channels = 8, .value_channels = 8, .extent = {40, 34}});
    add({.channels = 8, .heads = 1, .key_channels = 8, .value_channels = 8, .extent = {2, 70}});
    add({.channels = 72, .heads = 2, .key_channels = 16, .value_channels = 16, .extent = {4, 50}});
    add({.channels = 32, .heads = 2, .key_channels = 72, .value_channels = 40, .extent = {7, 8}});
    add({.channels = 0, .heads = 1, .key_channels = 70, .value_channels = 67, .extent = {3, 5}});
    add({.channels = 24,
         .heads = 1,
         .key_channels = 24,
         .value_channels = 24,
         .extent = {35, 6},
         .content = kAxial});
    add({.channels = 0,
         .heads = 1,
         .key_channels = 40,
         .value_channels = 9,
         .extent = {2, 70},
         .content = kAxial});
  }
  return configs;
}

INSTANTIATE_TEST_SUITE_P(Configs, GsaEmulated, testing::ValuesIn(GsaTestConfigs()));
INSTANTIATE_TEST_SUITE_P(Large, GsaEmulated, testing::ValuesIn(LargeConfigs()));
INSTANTIATE_TEST_SUITE_P(Configs, GsaEmulatedSome, testing::ValuesIn(EveryThirdUnlessLong(GsaTestConfigs())));
INSTANTIATE_TEST_SUITE_P(Large, GsaEmulatedSome, testing::ValuesIn(EveryThirdUnlessLong(LargeConfigs())));
INSTANTIATE_TEST_SUITE_P(Configs, GsaEmulatedWithoutMma, testing::ValuesIn(EveryThird(GsaTestConfigs())));
INSTANTIATE_TEST_SUITE_P(Large, GsaEmulatedWithoutMma, testing::ValuesIn(EveryThird(LargeConfigs())));

// Runs the second sample of the batch alone, without its padding, and compares the bits.
template <typename T>
void DependsOnTheSampleAlone(const GsaTestConfig& config) {
  GsaTestCase<T> together(config, 9);
  RunEmulated<GsaKernels, T>(together.Problem(), 1);
  GsaProblem whole = together.Problem();
  GsaProblem problem = whole;
  problem.batch = 1;
  problem.extent.valid = nullptr;
  problem.extent.size[1] = config.valid[2];
  problem.extent.size[2] = config.valid[3];
  for (FeatureMap* map : {&problem.x, &problem.q, &problem.k, &problem.v}) {
    if (map->data != nullptr) map->data = static_cast<const T*>(map->data) + map->batch_stride;
  }
  std::vector<T> alone(together.out().size(), T(std::numeric_limits<float>::quiet_NaN()));
  problem.out.data = alone.data();
  RunEmulated<GsaKernels, T>(problem, 1);
  for (int64_t c = 0; c < problem.value_channels; ++c) {
    for (int64_t y = 0; y < whole.extent.size[1]; ++y) {
      for (int64_t x = 0; x < whole.extent.size[2]; ++x) {
        const int64_t at =
            c * whole.out.channel_stride + y * whole.out.spatial_stride[1] + x * whole.out.spatial_stride[2];
        const T& got = together.out()[whole.out.batch_stride + at];
        if (y < config.valid[2] && x < config.valid[3]) {
          ASSERT_EQ(__builtin_memcmp(&got, &alone[at], sizeof(T)), 0) << c << " " << y << " " << x;
        } else {
          ASSERT_EQ(static_cast<float>(got), 0.0f) << c << " " << y << " " << x;
        }
      }
    }
  }
}

TEST(GsaEmulatedTest, ASampleDependsOnNeitherItsBatchNorItsPadding) {
  for (const bool channels_last : {false, true}) {
    for (const GsaContent content : {GsaContent::kGlobal, GsaContent::kAxial}) {
      for (const int64_t channels : {0, 16}) {
        GsaTestConfig config = {.batch = 2, .channels = channels, .heads = 1, .key_channels = 12};
        config.extent = {37, 18};
        config.content = content;
        config.channels_last = channels_last;
        config.valid = {37, 9, 33, 17};
        // 16-bit maps take the tensor cores, and float32 ones do not. Each type has each layout once.
        const bool is_float = channels_last == (content == GsaContent::kAxial);
        if (IsLongForm() || is_float) DependsOnTheSampleAlone<float>(config);
        if (IsLongForm() || !is_float) DependsOnTheSampleAlone<DeviceBFloat16>(config);
      }
    }
  }
}

// The module with and without 16-byte vectors, and the bare operator. The result is dense, so only its
// samples can be far apart.
template <typename T>
void OffsetsHave64Bits() {
  const GsaTestConfig vectors = {
      .batch = 2, .channels = 8, .heads = 2, .extent = {5, 16}, .valid = {5, 16, 4, 13}};
  GsaTestConfig elements = vectors;
  elements.channels = 7;
  elements.extent = {5, 15};
  GsaTestConfig bare = vectors;
  bare.channels = 0;
  for (GsaTestConfig config : {vectors, elements, bare}) {
    for (const bool channels_last : {false, true}) {
      config.channels_last = channels_last;
      GsaTestCase<T> test(config, 5);
      FarMapsGiveTheSameBits<GsaKernels, T>(test.Problem(), [](FarMaps<T>& maps, GsaProblem& p) {
        if (IsModule(p)) {
          maps.Move(p.x, p.channels, p.extent);
        } else {
          maps.Move(p.q, p.key_channels, p.extent);
          maps.Move(p.k, p.key_channels, p.extent);
          maps.Move(p.v, p.value_channels, p.extent);
        }
        maps.MoveResult(p.out, p.value_channels, p.extent, /*channels_too=*/false);
      });
    }
  }
}
TEST(GsaEmulatedTest, OffsetsHave64BitsInFloat32) { OffsetsHave64Bits<float>(); }
TEST(GsaEmulatedTest, OffsetsHave64BitsInFloat16) { OffsetsHave64Bits<DeviceHalf>(); }

}  // namespace
}  // namespace saccade::kernels
