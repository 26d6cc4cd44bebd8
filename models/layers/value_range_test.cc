#include "models/layers/value_range.h"

#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <limits>

namespace saccade::models {
namespace {

ValueRange Seen(const std::vector<at::Tensor>& maps) {
  ValueRange range;
  for (const at::Tensor& map : maps) range.Widen(map);
  for (const at::Tensor& map : maps) range.Count(map);
  return range;
}

double MeanSquare(const at::Tensor& x, const Grid& grid) {
  return Quantized(x, grid).dequantize().sub(x).square().mean().item<double>();
}

TEST(ValueRange, MinMaxHoldsEveryNumber) {
  const ValueRange range = Seen({at::full({4}, 3.0), at::full({4}, -1.0)});
  const Grid grid = range.Best(RangeMethod::kMinMax);
  EXPECT_DOUBLE_EQ(grid.scale, 4.0 / 255);
  EXPECT_EQ(grid.zero, 64);
}

// Behind a ReLU the zero point is 0, which is faster.
TEST(ValueRange, ZeroIsAlwaysInIt) {
  for (const RangeMethod method : {RangeMethod::kMinMax, RangeMethod::kPercentile, RangeMethod::kMse}) {
    EXPECT_EQ(Seen({at::rand({1000}).add(5)}).Best(method).zero, 0);
    EXPECT_EQ(Seen({at::rand({1000}).sub(7)}).Best(method).zero, 255);
  }
}

TEST(ValueRange, AnOutlierIsLimited) {
  at::manual_seed(1);
  at::Tensor x = at::randn({100'000});
  x[7] = 1000;
  const ValueRange range = Seen({x});
  EXPECT_NEAR(range.Best(RangeMethod::kMinMax).scale, 1004.0 / 255, 0.1);
  EXPECT_LT(range.Best(RangeMethod::kPercentile).scale, 0.1);
  // One outlier among 100,000 numbers adds more to the mean than all rounding does, so that it is not cut off
  // whole.
  EXPECT_LE(MeanSquare(x, range.Best(RangeMethod::kMse)), MeanSquare(x, range.Best(RangeMethod::kMinMax)));
}

TEST(ValueRange, MseIsTheBestForALongTail) {
  at::manual_seed(1);
  const at::Tensor x = at::randn({100'000}).pow(3);
  const ValueRange range = Seen({x});
  const double best = MeanSquare(x, range.Best(RangeMethod::kMse));
  EXPECT_LT(best, 0.9 * MeanSquare(x, range.Best(RangeMethod::kMinMax)));
  EXPECT_LT(best, 1.05 * MeanSquare(x, range.Best(RangeMethod::kPercentile)));
}

TEST(ValueRange, ZerosAloneAreExact) {
  const ValueRange range = Seen({at::zeros({10})});
  EXPECT_TRUE(range.seen());
  EXPECT_EQ(MeanSquare(at::zeros({10}), range.Best(RangeMethod::kMse)), 0);
}

TEST(ValueRange, RefusesWhatIsNotFinite) {
  for (const float value :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    ValueRange range;
    at::Tensor x = at::zeros({10});
    x[3] = value;
    EXPECT_THROW(range.Widen(x), std::runtime_error);
  }
}

}  // namespace
}  // namespace saccade::models
