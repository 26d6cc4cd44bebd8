// Checks what the module in 8 bits requires of tensors. inverted_residual_int8_cpu_test.cc and
// models/networks/mobile/modules_test.cc compare its results.
#include "kernels/inverted_residual/inverted_residual_int8.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/quantize_per_tensor.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

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

TEST_F(Int8InvertedResidualTensors, WeightsThatDoNotFitAreErrors) {
  EXPECT_THROW(Int8InvertedResidual(RandomWeights(0), 3), c10::Error);
  Int8InvertedResidual::Weights weights = RandomWeights(0);
  weights.filter = Layer({kExpanded - 1, 1, 3, 3});
  EXPECT_THROW(Int8InvertedResidual(weights, 1), c10::Error);
  weights = RandomWeights(0);
  weights.expand = Layer({kExpanded, 7, 1, 1});
  EXPECT_THROW(Int8InvertedResidual(weights, 1), c10::Error);
}

}  // namespace
}  // namespace saccade::kernels
