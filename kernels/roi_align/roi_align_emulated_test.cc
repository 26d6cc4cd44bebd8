// Compares the CUDA kernel of roi_align.cuh, compiled by g++ and run on the CPU, with the definition.
#include <gtest/gtest.h>

#include "kernels/roi_align/roi_align.cuh"
#include "kernels/roi_align/roi_align_testing.h"

namespace saccade::kernels {
namespace {

template <typename T>
void RunEmulated(RoiAlignTestCase<T>& test, uint64_t seed) {
  const RoiAlignProblem problem = test.Problem();
  ASSERT_TRUE(RoiAlignCudaFits(problem));
  RunRoiAlignCuda<T>(problem, [&](auto* kernel, unsigned x, unsigned y, int threads, size_t shared,
                                  const RoiAlignCuda& run) {
    emulator::Launch({.grid = dim3(x, y),
                      .block = dim3(static_cast<unsigned>(threads)),
                      .shared_bytes = shared,
                      .seed = seed},
                     [&] { kernel(run); });
  });
}

class RoiAlignEmulated : public testing::TestWithParam<RoiAlignTestConfig> {};

// Runs two orders of threads: a missing barrier would change the bits.
TEST_P(RoiAlignEmulated, IsTheDefinitionInFloat32) {
  RoiAlignTestCase<float> test(GetParam(), 1);
  RunEmulated(test, 1);
  EXPECT_LE(test.Error(), 1e-6);
  RoiAlignTestCase<float> again(GetParam(), 1);
  RunEmulated(again, 2);
  EXPECT_TRUE(SameBits(test.out(), again.out()));
}

TEST_P(RoiAlignEmulated, IsTheDefinitionInBFloat16) {
  RoiAlignTestCase<DeviceBFloat16> test(GetParam(), 2);
  RunEmulated(test, 1);
  EXPECT_LE(test.Error(), 1e-2);
}

TEST_P(RoiAlignEmulated, IsTheDefinitionInFloat16) {
  RoiAlignTestCase<DeviceHalf> test(GetParam(), 3);
  RunEmulated(test, 1);
  EXPECT_LE(test.Error(), 2e-3);
}

INSTANTIATE_TEST_SUITE_P(Configs, RoiAlignEmulated, testing::ValuesIn(RoiAlignTestConfigs()));

TEST(RoiAlignEmulatedTest, RegionsThatCannotBePooledAreNaN) {
  for (const float sample : {-1.0f, 2.0f, 1e30f, std::numeric_limits<float>::quiet_NaN()}) {
    RoiAlignTestCase<float> test({.regions = 2}, 1);
    test.rois()[5] = sample;
    RunEmulated(test, 1);
    const auto& out = test.out();
    EXPECT_TRUE(
        std::all_of(out.begin(), out.begin() + out.size() / 2, [](float v) { return !std::isnan(v); }));
    EXPECT_TRUE(std::all_of(out.begin() + out.size() / 2, out.end(), [](float v) { return std::isnan(v); }));
  }
}

}  // namespace
}  // namespace saccade::kernels
