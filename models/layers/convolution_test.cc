#include "models/layers/convolution.h"

#include <ATen/Context.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/conv3d.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "models/api/error.h"
#include "models/testing/random_weights.h"

namespace saccade::models {
namespace {

double RelativeError(const at::Tensor& got, const at::Tensor& expected) {
  return got.to(at::kDouble).sub(expected).norm().item<double>() / expected.norm().item<double>();
}

// The convolution and then its batch norm, in float64.
at::Tensor Expected(const at::Tensor& x, const TensorMap& tensors, int64_t stride, int64_t groups) {
  const at::Tensor weight = tensors.at("conv.weight").to(at::kDouble);
  const int64_t padding = weight.size(2) / 2;
  const at::Tensor y = at::conv2d(x.to(at::kDouble), weight, {}, stride, padding, 1, groups);
  const auto channel = [&](const char* name) { return tensors.at(name).to(at::kDouble).view({1, -1, 1, 1}); };
  return y.sub(channel("bn.running_mean"))
      .div(channel("bn.running_var").add(1e-5).sqrt())
      .mul(channel("bn.weight"))
      .add(channel("bn.bias"));
}

TensorMap Tensors(int64_t inputs, int64_t outputs, int64_t kernel, int64_t groups) {
  return testing::RandomTensors({{"conv.weight", {outputs, inputs / groups, kernel, kernel}},
                                 {"bn.weight", {outputs}},
                                 {"bn.bias", {outputs}},
                                 {"bn.running_mean", {outputs}},
                                 {"bn.running_var", {outputs}}});
}

struct Shape {
  int64_t inputs, outputs, kernel, stride, groups, height, width;
};

TEST(Convolution, AgreesWithConvolutionAndBatchNorm) {
  for (const Shape& shape :
       {Shape{3, 8, 3, 2, 1, 17, 12}, Shape{16, 24, 1, 1, 1, 7, 7}, Shape{40, 40, 3, 1, 40, 9, 5},
        Shape{24, 24, 3, 2, 24, 8, 9}, Shape{32, 10, 1, 1, 1, 1, 1}}) {
    const TensorMap tensors = Tensors(shape.inputs, shape.outputs, shape.kernel, shape.groups);
    const Affine affine = FoldBatchNorm(tensors, "bn.");
    const Convolution linear(tensors.at("conv.weight"), affine,
                             {.stride = shape.stride, .groups = shape.groups});
    const Convolution clipped(
        tensors.at("conv.weight"), affine,
        {.stride = shape.stride, .groups = shape.groups, .activation = Activation::kRelu6});
    const at::Tensor x = at::randn({3, shape.inputs, shape.height, shape.width}).mul(3);
    const at::Tensor expected = Expected(x, tensors, shape.stride, shape.groups);
    for (const at::Tensor& layout : {x, x.contiguous(at::MemoryFormat::ChannelsLast)}) {
      EXPECT_LT(RelativeError(linear(layout), expected), 1e-6);
      EXPECT_LT(RelativeError(clipped(layout), expected.clamp(0, 6)), 1e-6);
      const at::Tensor other = at::randn(expected.sizes()).contiguous(at::MemoryFormat::ChannelsLast);
      const at::Tensor kept = other.clone();
      EXPECT_LT(RelativeError(linear.WithSum(layout, other), expected.add(other)), 1e-6);
      EXPECT_TRUE(other.equal(kept));
    }
  }
}

// Its numbers mean nothing without scales and grids.
TEST(Convolution, RefusesQuantizedWeightsWithoutGrids) {
  const at::Tensor weight = at::ones({4, 4, 1, 1}, at::kChar);
  EXPECT_THROW(Convolution(weight, IdentityAffine(4), {}), LoadError);
}

TEST(Convolution, FusesReluAndSums) {
  const TensorMap tensors = Tensors(16, 24, 3, 1);
  const Affine affine = FoldBatchNorm(tensors, "bn.");
  for (const int64_t dilation : {1, 2}) {
    const Convolution convolution(tensors.at("conv.weight"), affine,
                                  {.dilation = dilation, .activation = Activation::kRelu});
    for (const int64_t side : {9, 1}) {
      const at::Tensor x = at::randn({2, 16, side, side + 2}).contiguous(at::MemoryFormat::ChannelsLast);
      const at::Tensor plain =
          at::conv2d(x.to(at::kDouble), tensors.at("conv.weight").to(at::kDouble), {}, 1, dilation, dilation)
              .mul(affine.scale.view({-1, 1, 1}))
              .add(affine.shift.view({-1, 1, 1}));
      EXPECT_LT(RelativeError(convolution(x), plain.clamp_min(0)), 1e-6);
      const at::Tensor other = at::randn(plain.sizes()).contiguous(at::MemoryFormat::ChannelsLast);
      const at::Tensor expected = plain.add(other).clamp_min(0);
      EXPECT_LT(RelativeError(convolution.WithSum(x, other), expected), 1e-6);
      const void* memory = other.const_data_ptr();
      const at::Tensor sum = convolution.AddedTo(other, x);
      EXPECT_LT(RelativeError(sum, expected), 1e-6);
      EXPECT_EQ(sum.const_data_ptr(), memory);
    }
  }
}

TEST(Convolution, TakesVolumes) {
  at::manual_seed(1);
  const at::Tensor weight = at::randn({12, 8, 3, 3, 3}).mul(0.1);
  const Affine affine{at::ones({12}, at::kDouble).mul(2), at::randn({12}, at::kDouble)};
  const Convolution convolution(weight, affine, {.stride = 2, .activation = Activation::kRelu});
  const at::Tensor x = at::randn({1, 8, 6, 9, 7});
  const at::Tensor expected = at::conv3d(x.to(at::kDouble), weight.to(at::kDouble), {}, 2, 1)
                                  .mul(2)
                                  .add(affine.shift.view({-1, 1, 1, 1}))
                                  .clamp_min(0);
  EXPECT_LT(RelativeError(convolution(x), expected), 1e-6);
  EXPECT_LT(RelativeError(convolution(x.contiguous(at::MemoryFormat::ChannelsLast3d)), expected), 1e-6);
}

// A stem for clips has a stride in space, but none in time.
TEST(Convolution, StridesOverOnesOwnDepth) {
  at::manual_seed(1);
  const at::Tensor weight = at::randn({12, 3, 7, 7, 7}).mul(0.1);
  const at::Tensor x = at::randn({1, 3, 6, 20, 14});
  const at::Tensor expected = at::conv3d(x.to(at::kDouble), weight.to(at::kDouble), {}, {1, 2, 2}, {3, 3, 3});
  for (const Precision precision : {Precision::kFloat32, Precision::kTf32}) {  // packed, and not packed
    const Convolution convolution(weight, {at::ones({12}, at::kDouble), at::zeros({12}, at::kDouble)},
                                  {.stride = 2, .depth_stride = 1, .target = {.precision = precision}});
    EXPECT_LT(RelativeError(convolution(x), expected), 1e-6);
  }
}

TEST(FoldBatchNorm, RefusesUnusableStatistics) {
  TensorMap tensors = Tensors(4, 4, 1, 1);
  tensors["bn.running_var"].select(0, 2).fill_(-1);
  try {
    FoldBatchNorm(tensors, "bn.");
    FAIL();
  } catch (const LoadError& error) {
    EXPECT_NE(std::string(error.what()).find("batch norm bn has a negative variance"), std::string::npos);
  }
}

}  // namespace
}  // namespace saccade::models
