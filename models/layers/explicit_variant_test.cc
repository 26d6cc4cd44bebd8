#include "models/layers/explicit_variant.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "models/layers/explicit_maps.h"

namespace saccade::models {
namespace {

constexpr int64_t kChannels = 8;
constexpr int64_t kHeads = 2;

double RelativeError(const at::Tensor& got, const at::Tensor& expected) {
  return got.to(at::kDouble).sub(expected).norm().item<double>() / expected.norm().item<double>();
}

// Attention whose transforms are the identity, so that its result is the map's alone.
ExplicitVariant MapAlone(const std::string& map, int64_t side, double radius, const Target& target) {
  TensorMap tensors;
  tensors.target = target;
  for (const char* part : {"place.value.weight", "place.out.weight"})
    tensors[part] = at::eye(kChannels).view({kChannels, kChannels, 1, 1});
  tensors["place.sigma"] = at::full({kHeads}, radius);
  return {tensors, "place", IdentityAffine(kChannels),
          ExplicitVariantOptions{.map = map, .heads = kHeads, .plus_one = false, .side = side}};
}

// Norm(G) of a Gaussian map applied to x, in float64.
at::Tensor Expected(const at::Tensor& x, double radius) {
  const int64_t side = x.size(3);
  const at::Tensor line = at::arange(side, at::kDouble).div(static_cast<double>(side));
  const at::Tensor factor =
      line.unsqueeze(1).sub(line).square().div(-2 * radius * radius).exp();  // of rows and of columns
  const at::Tensor sums = factor.sum(1);
  const at::Tensor rows = factor.div(sums.unsqueeze(1));
  return at::matmul(at::matmul(rows, x.to(at::kDouble)), rows.t());
}

// A small radius makes ratios of more than 100, which enlarge an error of bfloat16's rounding.
TEST(ExplicitVariant, WithoutTheOneIsExactInEachPrecision) {
  at::manual_seed(1);
  for (const double radius : {0.05, 0.1, 0.75}) {
    const at::Tensor x = at::randn({2, kChannels, 16, 16}).to(at::kBFloat16);
    const at::Tensor expected = Expected(x, radius);
    const Target exact{.replay_on_cpu = true};
    const Target coarse{.precision = Precision::kBFloat16, .replay_on_cpu = true};
    EXPECT_LT(RelativeError(MapAlone("gaussian", 16, radius, exact)(x.to(at::kFloat)), expected), 1e-4)
        << radius;
    EXPECT_LT(RelativeError(MapAlone("gaussian", 16, radius, coarse)(x), expected), 8e-3) << radius;
  }
}

TEST(ExplicitVariant, TakesMapsOfOnePosition) {
  const at::Tensor x = at::randn({1, kChannels, 1, 1});
  for (const std::string& map : ExplicitMaps()) {
    const ExplicitVariant attention = MapAlone(map, 1, 0.5, {.replay_on_cpu = true});
    EXPECT_LT(RelativeError(attention(x), x.to(at::kDouble)), 1e-6) << map;
  }
}

// The whole map of these positions has half a terabyte.
TEST(ExplicitVariant, IsLoadedWithoutTheWholeMap) {
  for (const char* map : {"gaussian", "exponential_manhattan"})
    EXPECT_NO_THROW(MapAlone(map, 512, 0.1, {.replay_on_cpu = true})) << map;
}

}  // namespace
}  // namespace saccade::models
