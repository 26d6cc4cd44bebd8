// Checks what the module in 8 bits requires of tensors. inverted_residual_int8_cpu_test.cc and
// models/networks/mobile/modules_test.cc compare its results.
#include "kernels/inverted_residual/inverted_residual_int8.h"

#include <ATen/ops/_empty_affine_quantized.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/quantize_per_tensor.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace saccade::kernels {
namespace {

constexpr int64_t kInputs = 12;
constexpr int64_t kExpanded = 40;
constexpr int64_t kOutputs = 20;

class Int8InvertedResidualTensors : public testing::Test {
 protected:
  void SetUp() override {
    if (!Int8InvertedResidual::Supports(kInputs)) GTEST_SKIP() << "this processor does not have AVX-512 VNNI";
  }
};

Int8InvertedResidual::Layer Layer(at::IntArrayRef shape) {
  return {.weight = at::randint(-127, 128, shape, at::kChar),
          .scale = at::ones({shape[0]}, at::kDouble).mul(1e-3),
          .bias = at::randn({shape[0]})};
}

Int8InvertedResidual::Weights RandomWeights(int64_t kept) {
  return {.expand = Layer({kExpanded, kInputs, 1, 1}),
          .filter = Layer({kExpanded + kept, 1, 3, 3}),
          .project = Layer({kOutputs, kExpanded + kept, 1, 1}),
          .filtered = {.scale = 0.03F, .zero = 0},
          .projected = {.scale = 0.02F, .zero = 0},
          .out = {.scale = 0.05F, .zero = 99}};
}

at::Tensor Map(int64_t channels, int64_t height, int64_t width) {
  const at::Tensor x = at::randn({2, channels, height, width}).contiguous(at::MemoryFormat::ChannelsLast);
  return at::quantize_per_tensor(x, 0.03, 120, at::kQUInt8);
}

TEST_F(Int8InvertedResidualTensors, TheResultCarriesItsGrid) {
  const at::Tensor got = Int8InvertedResidual(RandomWeights(0), 2)({.x = Map(kInputs, 5, 4)});
  EXPECT_EQ(got.sizes(), at::IntArrayRef({2, kOutputs, 3, 2}));
  EXPECT_TRUE(got.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_EQ(static_cast<float>(got.q_scale()), 0.05F);
  EXPECT_EQ(got.q_zero_point(), 99);
}

TEST_F(Int8InvertedResidualTensors, MapsThatDoNotFitAreErrors) {
  const Int8InvertedResidual made(RandomWeights(4), 1);
  const at::Tensor x = Map(kInputs, 4, 4);
  EXPECT_NO_THROW(made({.x = x, .kept = Map(4, 4, 4)}));
  EXPECT_THROW(made({.x = x}), c10::Error);
  EXPECT_THROW(made({.x = x, .kept = Map(3, 4, 4)}), c10::Error);
  EXPECT_THROW(made({.x = x.dequantize(), .kept = Map(4, 4, 4)}), c10::Error);
  EXPECT_THROW(made({.x = x, .kept = Map(4, 4, 4), .skipped = Map(kInputs, 4, 4)}), c10::Error);
}

// Dense in channels-last also without positions, where a map made by quantizing would not be.
at::Tensor Empty(int64_t height, int64_t width) {
  return at::_empty_affine_quantized({2, kInputs, height, width}, at::TensorOptions(at::kQUInt8), 0.03, 120,
                                     at::MemoryFormat::ChannelsLast);
}

TEST_F(Int8InvertedResidualTensors, MapsWithoutPositionsAreErrors) {
  for (const int64_t stride : {1, 2}) {
    const Int8InvertedResidual made(RandomWeights(0), stride);
    EXPECT_THROW(made({.x = Empty(0, 4)}), c10::Error);
    EXPECT_THROW(made({.x = Empty(4, 0)}), c10::Error);
  }
}

TEST_F(Int8InvertedResidualTensors, WeightsThatDoNotFitAreErrors) {
  EXPECT_THROW(Int8InvertedResidual(RandomWeights(0), 3), c10::Error);
  Int8InvertedResidual::Weights weights = RandomWeights(0);
  weights.filter = Layer({kExpanded - 1, 1, 3, 3});
  EXPECT_THROW(Int8InvertedResidual(weights, 1), c10::Error);
  weights = RandomWeights(0);
  weights.expand = Layer({kExpanded, 7, 1, 1});
  EXPECT_THROW(Int8InvertedResidual(weights, 1), c10::Error);
}

// The error of a module with one layer in place of RandomWeights(0)'s, or "" if it can be made.
std::string ErrorWith(Int8InvertedResidual::Layer Int8InvertedResidual::Weights::* which,
                      const Int8InvertedResidual::Layer& layer) {
  Int8InvertedResidual::Weights weights = RandomWeights(0);
  weights.*which = layer;
  try {
    const Int8InvertedResidual made(weights, 1);
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}

TEST_F(Int8InvertedResidualTensors, FiltersOfOtherSizesAreErrors) {
  using Weights = Int8InvertedResidual::Weights;
  using ::testing::HasSubstr;
  EXPECT_THAT(ErrorWith(&Weights::expand, Layer({kExpanded, kInputs, 3, 3})),
              HasSubstr("'expand.weight' should have shape [40, 12, 1, 1], got [40, 12, 3, 3]"));
  EXPECT_THAT(ErrorWith(&Weights::filter, Layer({kExpanded, 1, 5, 5})),
              HasSubstr("'filter.weight' should have shape [40, 1, 3, 3], got [40, 1, 5, 5]"));
  EXPECT_THAT(ErrorWith(&Weights::filter, Layer({kExpanded, 2, 3, 3})), HasSubstr("got [40, 2, 3, 3]"));
  EXPECT_THAT(ErrorWith(&Weights::filter, Layer({kExpanded, 9})), HasSubstr("got [40, 9]"));
  EXPECT_THAT(ErrorWith(&Weights::filter, Layer({kExpanded})), HasSubstr("got the shape [40]"));
  EXPECT_THAT(ErrorWith(&Weights::project, Layer({kOutputs, kExpanded, 1, 2})),
              HasSubstr("'project.weight' should have shape [20, 40, 1, 1], got [20, 40, 1, 2]"));
  // A product needs no sides.
  EXPECT_EQ(ErrorWith(&Weights::expand, Layer({kExpanded, kInputs})), "");
  EXPECT_EQ(ErrorWith(&Weights::project, Layer({kOutputs, kExpanded})), "");
}

TEST_F(Int8InvertedResidualTensors, ScalesAndBiasesOfOtherLengthsAreErrors) {
  using Weights = Int8InvertedResidual::Weights;
  using ::testing::HasSubstr;
  for (const auto& [name, which] : {std::pair{"expand", &Weights::expand},
                                    {"filter", &Weights::filter},
                                    {"project", &Weights::project}}) {
    const Int8InvertedResidual::Layer fits = RandomWeights(0).*which;
    EXPECT_EQ(ErrorWith(which, fits), "");
    Int8InvertedResidual::Layer layer = fits;
    layer.scale = layer.scale.narrow(0, 1, layer.scale.size(0) - 1);
    EXPECT_THAT(ErrorWith(which, layer), HasSubstr(std::string(name) + ".scale' should have shape"));
    layer = fits;
    layer.bias = layer.bias.unsqueeze(0);
    EXPECT_THAT(ErrorWith(which, layer), HasSubstr(std::string(name) + ".bias' should have shape"));
    layer = fits;
    layer.bias = at::Tensor();
    EXPECT_THAT(ErrorWith(which, layer), HasSubstr("should have a weight, scales and biases"));
    layer = fits;
    layer.weight = layer.weight.to(at::kFloat);
    EXPECT_THAT(ErrorWith(which, layer), HasSubstr(std::string(name) + ".weight' should be"));
  }
}

}  // namespace
}  // namespace saccade::kernels
