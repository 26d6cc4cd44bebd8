#include "models/layers/int8_convolution.h"

#include <ATen/Parallel.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "models/api/target.h"
#include "models/layers/convolution.h"
#include "models/layers/max_pool.h"

namespace saccade::models {
namespace {

constexpr Grid kOutput{0.05, 100};

class Int8ConvolutionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!CpuMultipliesInt8()) GTEST_SKIP() << "this processor does not multiply int8 itself";
    at::manual_seed(3);
  }
};

struct Shape {
  int64_t inputs, outputs, kernel, stride, groups, height, width;
  Grid input;
};

// Inputs behind a ReLU and inputs with both signs, padded and not, grouped, of one position.
const std::vector<Shape> kShapes = {
    {3, 16, 7, 2, 1, 23, 18, {0.02, 121}}, {16, 24, 1, 1, 1, 7, 9, {0.03, 0}},
    {16, 24, 1, 2, 1, 7, 9, {0.03, 77}},   {24, 24, 3, 1, 24, 9, 5, {0.02, 0}},
    {24, 24, 3, 2, 24, 8, 9, {0.02, 130}}, {32, 40, 3, 1, 1, 6, 11, {0.02, 128}},
    {32, 16, 3, 1, 4, 8, 8, {0.02, 3}},    {64, 10, 1, 1, 1, 1, 1, {0.01, 90}}};

PackedWeight::Geometry GeometryOf(const Shape& shape) {
  return {.padding = {shape.kernel / 2, shape.kernel / 2},
          .stride = {shape.stride, shape.stride},
          .dilation = {1, 1},
          .groups = shape.groups};
}

struct Case {
  explicit Case(const Shape& of, int64_t batch = 3)
      : shape(of),
        weight(QuantizedWeight(
            at::randn({shape.outputs, shape.inputs / shape.groups, shape.kernel, shape.kernel}))),
        bias(at::randn({shape.outputs})),
        x(Quantized(at::randn({batch, shape.inputs, shape.height, shape.width})
                        .contiguous(at::MemoryFormat::ChannelsLast),
                    shape.input)) {}

  Int8Convolution Make(Activation activation, bool stays_int8) const {
    return {weight,
            bias,
            GeometryOf(shape),
            {.activation = activation, .grids = {shape.input, kOutput}, .stays_int8 = stays_int8}};
  }
  // What the rounded numbers give without further rounding.
  at::Tensor Exact() const {
    const at::Tensor real = weight.values.to(at::kDouble).mul(weight.scale.view({-1, 1, 1, 1}));
    const PackedWeight::Geometry geometry = GeometryOf(shape);
    return at::conv2d(x.dequantize().to(at::kDouble), real, bias.to(at::kDouble), geometry.stride,
                      geometry.padding, geometry.dilation, shape.groups);
  }

  Shape shape;
  Int8Weight weight;
  at::Tensor bias, x;
};

double RelativeError(const at::Tensor& got, const at::Tensor& expected) {
  return got.to(at::kDouble).sub(expected).norm().item<double>() / expected.norm().item<double>();
}

// The most steps by which maps in 8 bits are off from the numbers, limited to the grid.
double StepsOff(const at::Tensor& got, const at::Tensor& expected) {
  const double low = -kOutput.scale * static_cast<double>(kOutput.zero);
  const at::Tensor limited = expected.clamp(low, low + 255 * kOutput.scale);
  return Floats(got, at::kDouble).sub(limited).abs().max().item<double>() / kOutput.scale;
}

TEST_F(Int8ConvolutionTest, SumsExactly) {
  for (const Shape& shape : kShapes) {
    const Case one(shape);
    const at::Tensor exact = one.Exact();
    EXPECT_LT(RelativeError(one.Make(Activation::kNone, false)(one.x), exact), 1e-6);
    EXPECT_LT(RelativeError(one.Make(Activation::kRelu, false)(one.x), exact.clamp_min(0)), 1e-6);
    EXPECT_LT(RelativeError(one.Make(Activation::kRelu6, false)(one.x), exact.clamp(0, 6)), 1e-6);
  }
}

TEST_F(Int8ConvolutionTest, RoundsItsResultToTheNearestStep) {
  for (const Shape& shape : kShapes) {
    const Case one(shape);
    const at::Tensor exact = one.Exact();
    EXPECT_LE(StepsOff(one.Make(Activation::kNone, true)(one.x), exact), 0.501);
    EXPECT_LE(StepsOff(one.Make(Activation::kRelu6, true)(one.x), exact.clamp(0, 6)), 0.501);
  }
}

TEST_F(Int8ConvolutionTest, AddsMapsOfEitherKind) {
  for (const Shape& shape : kShapes) {
    const Case one(shape);
    const at::Tensor exact = one.Exact();
    const Int8Convolution convolution = one.Make(Activation::kRelu, true);
    const at::Tensor other = at::randn(exact.sizes()).contiguous(at::MemoryFormat::ChannelsLast);
    const at::Tensor bytes = Quantized(other, {0.03, 110});
    const at::Tensor expected = exact.add(bytes.dequantize()).clamp_min(0);
    EXPECT_LE(StepsOff(convolution.AddedTo(CopyOf(bytes), one.x), expected), 0.501);
    EXPECT_LT(RelativeError(convolution.AddedTo(CopyOf(other), one.x), exact.add(other).clamp_min(0)), 1e-6);
    const Int8Convolution floats = one.Make(Activation::kRelu, false);
    EXPECT_LT(RelativeError(floats.AddedTo(CopyOf(bytes), one.x), expected), 1e-6);
    const Int8Convolution clipped = one.Make(Activation::kRelu6, false);
    EXPECT_LT(RelativeError(clipped.AddedTo(CopyOf(other), one.x), exact.add(other).clamp(0, 6)), 1e-6);
  }
}

TEST_F(Int8ConvolutionTest, NeitherBatchNorThreadsChangeAResult) {
  const int threads = at::get_num_threads();
  for (const Shape& shape : kShapes) {
    const Case one(shape, 5);
    for (const bool stays : {false, true}) {
      const Int8Convolution convolution = one.Make(Activation::kRelu, stays);
      const at::Tensor other =
          Quantized(at::rand(one.Exact().sizes()).contiguous(at::MemoryFormat::ChannelsLast), {0.03, 0});
      const auto both = [&](int64_t first, int64_t count) {
        const at::Tensor x = one.x.narrow(0, first, count);
        return std::pair(Floats(convolution(x), at::kFloat),
                         Floats(convolution.AddedTo(CopyOf(other.narrow(0, first, count)), x), at::kFloat));
      };
      const auto together = both(0, 5);
      for (int64_t i = 0; i < 5; ++i) {
        const auto alone = both(i, 1);
        EXPECT_TRUE(alone.first.equal(together.first.narrow(0, i, 1)));
        EXPECT_TRUE(alone.second.equal(together.second.narrow(0, i, 1)));
      }
      at::set_num_threads(threads == 1 ? 2 : 1);
      EXPECT_TRUE(both(0, 5).first.equal(together.first));
      at::set_num_threads(threads);
    }
  }
}

// Its input is rounded to the grid that was measured, or it comes on the grid of the layer before.
TEST_F(Int8ConvolutionTest, TakesFloats) {
  const Case one(kShapes[1]);
  const Int8Convolution convolution = one.Make(Activation::kNone, false);
  EXPECT_TRUE(convolution(one.x.dequantize()).equal(convolution(one.x)));
}

// A batch norm may negate a channel.
TEST_F(Int8ConvolutionTest, AConvolutionFoldsItsBatchNorm) {
  const Case one(kShapes[5]);
  const at::Tensor scale = at::randn({one.shape.outputs}, at::kDouble);
  const Convolution convolution(one.weight.values, {scale, one.bias.to(at::kDouble)},
                                {.target = {.precision = Precision::kInt8},
                                 .grids = Int8Grids{one.shape.input, kOutput},
                                 .weight_scale = one.weight.scale.to(at::kFloat)});
  const at::Tensor exact = one.Exact().sub(one.bias.view({-1, 1, 1})).mul(scale.view({-1, 1, 1}));
  // The rest of the network computes in bfloat16 here.
  EXPECT_LT(RelativeError(convolution(one.x), exact.add(one.bias.view({-1, 1, 1}))), 4e-3);
}

TEST(QuantizedWeight, IsOffByHalfAStepAtMost) {
  at::manual_seed(1);
  at::Tensor weight = at::randn({6, 4, 3, 3});
  weight[2].zero_();
  const Int8Weight rounded = QuantizedWeight(weight);
  const at::Tensor off =
      rounded.values.to(at::kDouble).mul(rounded.scale.view({-1, 1, 1, 1})).sub(weight).abs();
  EXPECT_TRUE(off.flatten(1).amax(1).le(rounded.scale.mul(0.5001)).all().item<bool>());
  EXPECT_TRUE(off[2].eq(0).all().item<bool>());
}

TEST(QuantizedMap, CarriesItsGrid) {
  const at::Tensor x = at::randn({2, 8, 9, 7}).contiguous(at::MemoryFormat::ChannelsLast);
  const Grid grid{0.05, 120};
  const at::Tensor map = Quantized(x, grid);
  EXPECT_LE(Floats(map, at::kFloat).sub(x).abs().max().item<float>(), 0.0251F);
  const at::Tensor again = OnGrid(BytesOf(map), grid);
  EXPECT_EQ(again.data_ptr(), map.data_ptr());
  EXPECT_TRUE(again.dequantize().equal(map.dequantize()));
  const at::Tensor pooled = MaxPool(again, {.kernel = 3, .stride = 2, .padding = 1});
  EXPECT_TRUE(pooled.dequantize().equal(at::max_pool2d(map.dequantize(), 3, 2, 1)));
  // An operator that does not support maps in 8 bits must not take their bytes for numbers.
  EXPECT_THROW(at::conv2d(map, at::ones({1, 8, 1, 1})), std::exception);
}

}  // namespace
}  // namespace saccade::models
