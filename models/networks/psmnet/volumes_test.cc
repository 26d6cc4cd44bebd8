#include <ATen/ops/arange.h>
#include <ATen/ops/einsum.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/upsample_trilinear3d.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <limits>

#include "models/networks/psmnet/cost_volume.h"
#include "models/networks/psmnet/regression.h"

namespace saccade::models {
namespace {

// float64 selects ATen's operators, as a GPU does.
class ConcatenationVolumeTest : public ::testing::TestWithParam<at::ScalarType> {};
INSTANTIATE_TEST_SUITE_P(Types, ConcatenationVolumeTest,
                         ::testing::Values(at::kFloat, at::kBFloat16, at::kDouble));

// Compares with the definition, element by element.
TEST_P(ConcatenationVolumeTest, HoldsBothPictures) {
  constexpr int64_t kChannels = 3;
  constexpr int64_t kPlanes = 7;  // some disparities exceed the width
  const at::Tensor left = at::randn({1, kChannels, 4, 5}).to(GetParam());
  const at::Tensor right = at::randn({1, kChannels, 4, 5}).to(GetParam());
  const at::Tensor volume = ConcatenationVolume(left, right, kPlanes);
  ASSERT_EQ(volume.sizes(), (std::vector<int64_t>{1, 2 * kChannels, kPlanes, 4, 5}));
  EXPECT_TRUE(volume.is_contiguous(at::MemoryFormat::ChannelsLast3d));
  for (int64_t c = 0; c < 2 * kChannels; ++c) {
    for (int64_t d = 0; d < kPlanes; ++d) {
      for (int64_t y = 0; y < 4; ++y) {
        for (int64_t x = 0; x < 5; ++x) {
          float expected = 0;
          if (x >= d) {
            expected = (c < kChannels ? left[0][c][y][x] : right[0][c - kChannels][y][x - d]).item<float>();
          }
          ASSERT_EQ(volume[0][c][d][y][x].item<float>(), expected) << c << ' ' << d << ' ' << y << ' ' << x;
        }
      }
    }
  }
}

// The same from the upsampled volume, in float64.
at::Tensor Expected(const at::Tensor& costs, int64_t factor, bool align_corners) {
  const at::Tensor volume = costs.to(at::kDouble).unsqueeze(0).unsqueeze(0);
  const at::Tensor fine = at::upsample_trilinear3d(
      volume, {factor * costs.size(0), factor * costs.size(1), factor * costs.size(2)}, align_corners);
  const at::Tensor disparities = at::arange(factor * costs.size(0), at::kDouble);
  return at::einsum("dhw,d->hw", {fine.squeeze(0).squeeze(0).softmax(0), disparities});
}

TEST(RegressDisparity, AgreesWithTheEnlargedVolume) {
  at::manual_seed(1);
  for (const auto& shape : {std::vector<int64_t>{12, 9, 17}, {4, 1, 1}, {48, 5, 33}, {1, 2, 3}}) {
    // Includes spreads that select a single disparity, far from zero, where exponentials would overflow.
    for (const double spread : {0.1, 3.0, 60.0}) {
      const at::Tensor costs = at::randn(shape).mul(spread).add(200);
      // float64 selects ATen's operators, as a GPU does.
      for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kDouble}) {
        for (const bool align_corners : {true, false}) {
          const at::Tensor given = costs.to(type);
          const at::Tensor got = RegressDisparity(given, 4, align_corners);
          const at::Tensor expected = Expected(given, 4, align_corners);
          ASSERT_EQ(got.sizes(), expected.sizes());
          const double worst = got.sub(expected).abs().max().item<double>();
          EXPECT_LT(worst, 1e-5 * 4 * static_cast<double>(shape[0]) * std::max(1.0, spread)) << type;
          EXPECT_GE(got.min().item<double>(), 0);
        }
      }
    }
  }
}

// With aligned corners no enlarged position lies on the second of three planes.
TEST(RegressDisparity, IsFiniteWhereNoEnlargedCostIsTheLargest) {
  const at::Tensor costs = at::zeros({3, 1, 1});
  costs[1] = 2000;
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kDouble}) {
    const at::Tensor disparity = RegressDisparity(costs.to(type), 4, true);
    EXPECT_LT(disparity.sub(5.5).abs().max().item<double>(), 1e-2) << type;
  }
}

TEST(RegressDisparity, LeavesNothingFiniteWhereCostsAreNot) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const at::Tensor costs = at::rand({8, 4, 4});
    costs[3][2][1] = bad;
    EXPECT_FALSE(RegressDisparity(costs, 4, true).isfinite().all().item<bool>()) << bad;
  }
}

}  // namespace
}  // namespace saccade::models
