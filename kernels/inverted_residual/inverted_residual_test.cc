// Compares the module on tensors with ATen's convolutions.
#include "kernels/inverted_residual/inverted_residual.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

namespace saccade::kernels {
namespace {

constexpr int64_t kInputs = 12;
constexpr int64_t kExpanded = 40;
constexpr int64_t kOutputs = 20;

struct Module {
  int64_t kept = 0;
  int64_t beside = 0;
  int64_t stride = 1;
  bool skips = false;
};

InvertedResidual::Weights RandomWeights(const Module& module) {
  const int64_t filtered = kExpanded + module.kept;
  return {.expand = at::randn({kExpanded, kInputs, 1, 1}),
          .expand_bias = at::randn({kExpanded}),
          .filter = at::randn({filtered, 1, 3, 3}),
          .filter_bias = at::randn({filtered}),
          .project = at::randn({kOutputs, filtered + module.beside, 1, 1}),
          .project_bias = at::randn({kOutputs})};
}

at::Tensor Map(int64_t channels, int64_t height, int64_t width) {
  return at::randn({2, channels, height, width}).contiguous(at::MemoryFormat::ChannelsLast);
}

InvertedResidual::Maps RandomMaps(const Module& module) {
  const int64_t height = 9;
  const int64_t width = 14;
  const int64_t out_height = (height - 1) / module.stride + 1;
  const int64_t out_width = (width - 1) / module.stride + 1;
  return {.x = Map(kInputs, height, width),
          .kept = module.kept > 0 ? Map(module.kept, height, width) : at::Tensor(),
          .beside = module.beside > 0 ? Map(module.beside, out_height, out_width) : at::Tensor(),
          .skipped = module.skips ? Map(kOutputs, out_height, out_width) : at::Tensor()};
}

at::Tensor Expected(const InvertedResidual::Weights& weights, const InvertedResidual::Maps& maps,
                    int64_t stride) {
  const auto precise = [](const at::Tensor& tensor) { return tensor.to(at::kDouble); };
  at::Tensor x =
      at::conv2d(precise(maps.x), precise(weights.expand), precise(weights.expand_bias)).clamp(0, 6);
  if (maps.kept.defined()) x = at::cat({x, precise(maps.kept)}, 1);
  const int64_t filtered = x.size(1);
  x = at::conv2d(x, precise(weights.filter), precise(weights.filter_bias), stride, 1, 1, filtered)
          .clamp(0, 6);
  if (maps.beside.defined()) x = at::cat({x, precise(maps.beside)}, 1);
  x = at::conv2d(x, precise(weights.project), precise(weights.project_bias));
  return maps.skipped.defined() ? x + precise(maps.skipped) : x;
}

TEST(InvertedResidual, AgreesWithConvolutions) {
  for (const Module& module :
       {Module{}, Module{.stride = 2}, Module{.skips = true}, Module{.kept = 12}, Module{.beside = 12},
        Module{.kept = 5, .beside = 7, .stride = 2, .skips = true}}) {
    const InvertedResidual::Weights weights = RandomWeights(module);
    const InvertedResidual::Maps maps = RandomMaps(module);
    const at::Tensor got = InvertedResidual(weights, module.stride, at::kFloat)(maps);
    const at::Tensor expected = Expected(weights, maps, module.stride);
    ASSERT_EQ(got.sizes(), expected.sizes());
    EXPECT_TRUE(got.is_contiguous(at::MemoryFormat::ChannelsLast));
    EXPECT_LT(got.to(at::kDouble).sub(expected).abs().max().item<double>(),
              1e-5 * expected.abs().max().item<double>());
  }
}

TEST(InvertedResidual, AnEmptyBatchHasAnEmptyResult) {
  const InvertedResidual made(RandomWeights({}), 1, at::kFloat);
  EXPECT_EQ(made({.x = Map(kInputs, 4, 4).narrow(0, 0, 0)}).sizes(), at::IntArrayRef({0, kOutputs, 4, 4}));
}

TEST(InvertedResidual, MapsThatDoNotFitAreErrors) {
  const InvertedResidual made(RandomWeights({.kept = 3}), 1, at::kFloat);
  const at::Tensor x = Map(kInputs, 4, 4);
  EXPECT_THROW(made({.x = x}), c10::Error);
  EXPECT_THROW(made({.x = x, .kept = Map(4, 4, 4)}), c10::Error);
  EXPECT_THROW(made({.x = x, .kept = Map(3, 4, 5)}), c10::Error);
  EXPECT_THROW(made({.x = x.to(at::kDouble), .kept = Map(3, 4, 4)}), c10::Error);
  EXPECT_THROW(made({.x = x.contiguous(), .kept = Map(3, 4, 4)}), c10::Error);
  EXPECT_THROW(made({.x = x, .kept = Map(3, 4, 4), .skipped = Map(kInputs, 4, 4)}), c10::Error);
  EXPECT_NO_THROW(made({.x = x, .kept = Map(3, 4, 4)}));
}

TEST(InvertedResidual, MapsWithoutPositionsAreErrors) {
  for (const int64_t stride : {1, 2}) {
    const InvertedResidual made(RandomWeights({}), stride, at::kFloat);
    EXPECT_THROW(made({.x = Map(kInputs, 0, 4)}), c10::Error);
    EXPECT_THROW(made({.x = Map(kInputs, 4, 0)}), c10::Error);
  }
}

TEST(InvertedResidual, WeightsThatDoNotFitAreErrors) {
  InvertedResidual::Weights weights = RandomWeights({});
  weights.filter = weights.filter.narrow(0, 0, kExpanded - 1);
  weights.filter_bias = weights.filter_bias.narrow(0, 0, kExpanded - 1);
  EXPECT_THROW(InvertedResidual(weights, 1, at::kFloat), c10::Error);
  EXPECT_THROW(InvertedResidual(RandomWeights({}), 3, at::kFloat), c10::Error);
  EXPECT_THROW(InvertedResidual(RandomWeights({}), 1, at::kDouble), c10::Error);
}

}  // namespace
}  // namespace saccade::kernels
