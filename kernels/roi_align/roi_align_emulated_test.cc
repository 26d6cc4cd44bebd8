// Compares the CUDA kernel of roi_align.cuh, compiled by g++ and run on the CPU, with the definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/device/testing/emulated_test.h"
#include "kernels/roi_align/roi_align.cuh"
#include "kernels/roi_align/roi_align_testing.h"

namespace saccade::kernels {
namespace {

struct RoiAlignKernels {
  using Config = RoiAlignTestConfig;
  template <typename T>
  using Case = RoiAlignTestCase<T>;

  static bool Fits(const RoiAlignProblem& problem) { return RoiAlignCudaFits(problem); }
  static int64_t Floats(const RoiAlignProblem& /*problem*/) { return 0; }
  template <typename T>
  static void Run(const RoiAlignProblem& problem, float* /*workspace*/, const EmulatedLaunch& launch) {
    RunRoiAlignCuda<T>(problem, launch);
  }
};
using RoiAlignEmulated = EmulatedTest<RoiAlignKernels>;

TEST_P(RoiAlignEmulated, MatchesTheFormulasInFloat32) { MatchesTheFormulas<float>(); }
TEST_P(RoiAlignEmulated, MatchesTheFormulasInBFloat16) { MatchesTheFormulas<DeviceBFloat16>(); }
TEST_P(RoiAlignEmulated, MatchesTheFormulasInFloat16) { MatchesTheFormulas<DeviceHalf>(); }
TEST_P(RoiAlignEmulated, DoesNotDependOnTheOrderOfThreads) { DoesNotDependOnTheOrderOfThreads<float>(); }

INSTANTIATE_TEST_SUITE_P(Configs, RoiAlignEmulated, testing::ValuesIn(RoiAlignTestConfigs()));

TEST(RoiAlignEmulatedTest, RegionsThatCannotBePooledAreNaN) {
  for (const float sample : {-1.0f, 2.0f, 1e30f, std::numeric_limits<float>::quiet_NaN()}) {
    RoiAlignTestCase<float> test({.regions = 2}, 1);
    test.rois()[5] = sample;
    RunEmulated<RoiAlignKernels, float>(test.Problem(), 1);
    const auto& out = test.out();
    EXPECT_TRUE(
        std::all_of(out.begin(), out.begin() + out.size() / 2, [](float v) { return !std::isnan(v); }));
    EXPECT_TRUE(std::all_of(out.begin() + out.size() / 2, out.end(), [](float v) { return std::isnan(v); }));
  }
}

// The result is dense.
template <typename T>
void OffsetsHave64Bits() {
  using Config = RoiAlignTestConfig;
  for (const auto layout : {Config::kContiguous, Config::kChannelsLast}) {
    RoiAlignTestCase<T> test({.batch = 2,
                              .channels = 8,
                              .levels = {{10, 16}, {5, 8}},
                              .regions = 9,
                              .layout = layout,
                              .channels_last_out = layout == Config::kChannelsLast,
                              .padded = true},
                             5);
    FarMapsGiveTheSameDenseBits<RoiAlignKernels, T>(
        test.Problem(), test.out(), [](FarMaps<T>& maps, RoiAlignProblem& p) {
          for (int l = 0; l < p.levels; ++l) maps.Move(p.level[l].map, p.channels, p.level[l].extent);
        });
  }
}
TEST(RoiAlignEmulatedTest, OffsetsHave64BitsInFloat32) { OffsetsHave64Bits<float>(); }
TEST(RoiAlignEmulatedTest, OffsetsHave64BitsInFloat16) { OffsetsHave64Bits<DeviceHalf>(); }

}  // namespace
}  // namespace saccade::kernels
