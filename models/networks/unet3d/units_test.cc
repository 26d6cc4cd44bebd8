#include "models/networks/unet3d/units.h"

#include <ATen/Context.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace saccade::models {
namespace {

// Computes the percentile by its definition, with sorting.
double Percentile(const at::Tensor& volume, double percent) {
  const auto* data = volume.const_data_ptr<float>();
  std::vector<float> values(data, data + volume.numel());
  std::sort(values.begin(), values.end());
  const double place = percent / 100 * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, values.size() - 1);
  const double from = values[below];
  return from + (place - std::floor(place)) * (static_cast<double>(values[above]) - from);
}

void ExpectPercentiles(const at::Tensor& volume) {
  const Units units = PercentileUnits(volume);
  const double low = Percentile(volume, 2);
  EXPECT_EQ(units.offset, low);
  EXPECT_EQ(units.scale, Percentile(volume, 99.8) - low + 1e-20);
}

TEST(PercentileUnits, AreExact) {
  at::manual_seed(3);
  for (const int64_t count : {1, 2, 3, 50, 501, 4000, 300'001}) {
    ExpectPercentiles(at::randn({1, 1, count}));                     // both signs
    ExpectPercentiles(at::randn({1, 1, count}).mul_(30).add_(1e6));  // far from zero, few distinct values
    ExpectPercentiles(at::randn({1, 1, count}).exp_().mul_(1e-30));  // tiny
    ExpectPercentiles(at::randn({1, 1, count}).mul_(2).round_());    // many of one value, -0 and 0
    ExpectPercentiles(at::randn({1, 1, count}).mul_(3).exp_().neg_());
  }
}

TEST(PercentileUnits, OfAConstantVolumeLeaveItConstant) {
  const at::Tensor volume = at::full({2, 3, 4}, 7.5);
  const Units units = PercentileUnits(volume);
  EXPECT_EQ(units.offset, 7.5);
  EXPECT_EQ(units.scale, 1e-20);
  at::Tensor seen = Normalised(volume, units, {4, 4, 4});
  EXPECT_EQ(seen.abs().max().item<float>(), 0);
  ToUnits(seen, units);
  EXPECT_EQ(seen.sub(7.5).abs().max().item<float>(), 0);
}

TEST(Normalised, RepeatsTheLastOfEachAxis) {
  const at::Tensor volume = at::randn({3, 2, 5});
  const Units units{.offset = 0.25, .scale = 2};
  const at::Tensor padded = Normalised(volume, units, {4, 4, 8});
  ASSERT_EQ(padded.sizes(), (std::vector<int64_t>{1, 1, 4, 4, 8}));
  for (int64_t d = 0; d < 4; ++d) {
    for (int64_t h = 0; h < 4; ++h) {
      for (int64_t w = 0; w < 8; ++w) {
        const auto value =
            volume[std::min<int64_t>(d, 2)][std::min<int64_t>(h, 1)][std::min<int64_t>(w, 4)].item<float>();
        EXPECT_FLOAT_EQ(padded[0][0][d][h][w].item<float>(), (value - 0.25F) / 2);
      }
    }
  }
}

// In float32 the offset alone would cause errors of thousandths of the range.
TEST(Normalised, KeepsWhatLiesFarFromZero) {
  at::Tensor values = at::randn({2, 3, 4}).add_(1e5);
  const at::Tensor sent = values.clone();
  const Units units{.offset = 1e5 + 0.0013, .scale = 1.7};
  values = Normalised(values, units, {2, 3, 4});
  const at::Tensor expected = sent.to(at::kDouble).sub(units.offset).div(units.scale);
  EXPECT_LT(values[0][0].sub(expected).abs().max().item<double>(), 1e-6);
  ToUnits(values, units);
  EXPECT_EQ(values[0][0].sub(sent).abs().max().item<float>(), 0);
}

}  // namespace
}  // namespace saccade::models
