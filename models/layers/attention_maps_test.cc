#include "models/layers/attention_maps.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "models/api/attention_probe.h"
#include "models/layers/efficient_attention.h"

namespace saccade::models {
namespace {

using ::testing::ElementsAre;
using Wishes = std::vector<std::optional<ExplanationWish>>;

constexpr int64_t kChannels = 6;
constexpr int64_t kKeys = 4;

TensorMap Weights() {
  at::manual_seed(1);
  TensorMap tensors;
  for (const char* part : {"query", "key", "value"}) {
    tensors[std::string("place.") + part + ".weight"] = at::randn({kKeys, kChannels, 1, 1});
    tensors[std::string("place.") + part + ".bias"] = at::randn({kKeys});
  }
  tensors["place.out.weight"] = at::randn({kChannels, kKeys, 1, 1});
  tensors["place.out.bias"] = at::randn({kChannels});
  return tensors;
}

std::vector<std::string> NamesOf(const Explanation& explanation) {
  std::vector<std::string> names;
  for (const AttentionMap& map : explanation.maps) names.push_back(map.name);
  return names;
}

double SumOf(const AttentionMap& map) { return std::accumulate(map.values.begin(), map.values.end(), 0.0); }

TEST(AttentionProbeTest, WhoAsksForNothingGetsNothingAndWhatIsKeptIsBounded) {
  EXPECT_EQ(AttentionProbe::Current(), nullptr);
  AttentionProbe probe({std::nullopt, ExplanationWish{"a", 64}});
  {
    const AttentionProbe::Scope scope(&probe);
    EXPECT_EQ(AttentionProbe::Current(), &probe);
    EXPECT_EQ(probe.Wanted("a", 0, 8, 10), 0);
    EXPECT_EQ(probe.Wanted("b", 1, 8, 10), 0);
    EXPECT_EQ(probe.Wanted("a", 1, 8, 10), 8);
    EXPECT_EQ(probe.Wanted("a", 1, 100, 10), 64);
    EXPECT_EQ(probe.Wanted("a", 1, 100, int64_t{4} << 20), 2);
    EXPECT_EQ(probe.Wanted("a", 1, 100, int64_t{64} << 20), 1);
    EXPECT_EQ(probe.Wanted("a", 2, 8, 10), 0);
    AttentionProbe::StartAt(1);
    EXPECT_EQ(probe.Wanted("a", 0, 8, 10), 8);
    probe.Take(0, {"a", {}, 8});
  }
  EXPECT_EQ(AttentionProbe::Current(), nullptr);
  EXPECT_FALSE(probe.TakeOut(0).has_value());
  EXPECT_EQ(probe.TakeOut(1)->available, 8);
  EXPECT_FALSE(probe.TakeOut(1).has_value());
}

TEST(AttentionMapsTest, AKeysMapIsOfItsOwnSampleAndOfWhatIsPicture) {
  const TensorMap weights = Weights();
  const EfficientAttention layer(weights, "place", 1, "softmax");
  const at::Tensor x = at::randn({2, kChannels, 5, 7});
  const at::Tensor valid = at::tensor({5, 7, 3, 4}, at::kLong).view({2, 2});
  AttentionProbe probe({std::nullopt, ExplanationWish{"place", 3}});
  at::Tensor looked_at;
  {
    const AttentionProbe::Scope scope(&probe);
    looked_at = layer(x, valid);
  }
  EXPECT_TRUE(looked_at.equal(layer(x, valid)));
  EXPECT_FALSE(probe.TakeOut(0).has_value());
  const auto explanation = probe.TakeOut(1);
  ASSERT_TRUE(explanation.has_value());
  EXPECT_EQ(explanation->layer, "place");
  EXPECT_EQ(explanation->available, kKeys);
  EXPECT_THAT(NamesOf(*explanation), ElementsAre("key 0", "key 1", "key 2"));

  const at::Tensor seen = x[1].narrow(1, 0, 3).narrow(2, 0, 4).flatten(1);
  const at::Tensor keys =
      at::matmul(weights.at("place.key.weight").flatten(1), seen) + weights.at("place.key.bias").unsqueeze(1);
  const at::Tensor expected = keys.softmax(1);
  for (int64_t key = 0; key < 3; ++key) {
    const AttentionMap& map = explanation->maps[static_cast<size_t>(key)];
    EXPECT_EQ(map.height, 3);
    EXPECT_EQ(map.width, 4);
    EXPECT_NEAR(SumOf(map), 1, 1e-5);
    EXPECT_TRUE(at::tensor(map.values).allclose(expected[key], 1e-5, 1e-7));
  }

  AttentionProbe alone({ExplanationWish{"place", 3}});
  {
    const AttentionProbe::Scope scope(&alone);
    layer(x.narrow(0, 1, 1).contiguous(), valid.narrow(0, 1, 1));
  }
  const auto again = alone.TakeOut(0);
  ASSERT_TRUE(again.has_value());
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(again->maps[i].values, explanation->maps[i].values);
}

TEST(AttentionMapsTest, OfVolumesTheDepthIsSummed) {
  TensorMap weights = Weights();
  for (auto& [name, tensor] : weights) {
    if (tensor.dim() == 4) tensor = tensor.unsqueeze(4);
  }
  const EfficientAttention layer(weights, "place", 2, "softmax");
  AttentionProbe probe({ExplanationWish{"place", 1}});
  {
    const AttentionProbe::Scope scope(&probe);
    layer(at::randn({1, kChannels, 3, 4, 5}));
  }
  const auto explanation = probe.TakeOut(0);
  ASSERT_TRUE(explanation.has_value());
  EXPECT_EQ(explanation->maps.at(0).height, 4);
  EXPECT_EQ(explanation->maps.at(0).width, 5);
  EXPECT_NEAR(SumOf(explanation->maps[0]), 1, 1e-5);
}

TEST(AttentionMapsTest, KroneckerWeightsAreTheMeanOfAllPositions) {
  at::manual_seed(2);
  const at::Tensor x = at::randn({1, 4, 3, 5});
  const at::Tensor scale = at::tensor({0.5F, 2.0F});
  for (const char* kind : {"kv", "qkv"}) {
    AttentionProbe probe({ExplanationWish{"k", 64}});
    {
      const AttentionProbe::Scope scope(&probe);
      ProbeKronecker("k", x, {.kind = kind, .coefficient_scale = scale, .heads = 2});
    }
    const auto explanation = probe.TakeOut(0);
    ASSERT_TRUE(explanation.has_value());
    EXPECT_THAT(NamesOf(*explanation), ElementsAre("head 0", "head 0 columns", "head 0 rows", "head 1",
                                                   "head 1 columns", "head 1 rows"));
    EXPECT_EQ(explanation->available, 6);
    for (size_t head = 0; head < 2; ++head) {
      const AttentionMap& both = explanation->maps[3 * head];
      const AttentionMap& columns = explanation->maps[3 * head + 1];
      const AttentionMap& rows = explanation->maps[3 * head + 2];
      EXPECT_EQ(columns.values.size(), 5U);
      EXPECT_EQ(rows.values.size(), 3U);
      EXPECT_NEAR(SumOf(both), 1, 1e-5);
      EXPECT_NEAR(SumOf(columns) + SumOf(rows), 1, 1e-5);
      EXPECT_NEAR(both.values[1 * 5 + 3], columns.values[3] / 3 + rows.values[1] / 5, 1e-6);

      // The expected values follow the definition, position by position.
      const at::Tensor mine = x[0].narrow(0, static_cast<int64_t>(2 * head), 2);
      const at::Tensor averages = at::cat({mine.mean(1), mine.mean(2)}, 1);
      const bool kv = std::string(kind) == "kv";
      const at::Tensor queries = kv ? mine.flatten(1) : averages;
      const at::Tensor answered =
          at::matmul(averages.transpose(0, 1), queries).mul(scale[static_cast<int64_t>(head)]).softmax(0);
      const at::Tensor expected =
          kv ? answered.mean(1) : (answered.narrow(1, 0, 5).mean(1) + answered.narrow(1, 5, 3).mean(1)) / 2;
      EXPECT_TRUE(at::tensor(columns.values).allclose(expected.narrow(0, 0, 5), 1e-5, 1e-7));
      EXPECT_TRUE(at::tensor(rows.values).allclose(expected.narrow(0, 5, 3), 1e-5, 1e-7));
    }
  }
}

TEST(AttentionMapsTest, SiameseScoresAreThoseOfTheirHead) {
  const at::Tensor x = at::randn({1, 4, 2, 3});
  const at::Tensor w = at::randn({4});
  AttentionProbe probe({ExplanationWish{"s", 64}});
  {
    const AttentionProbe::Scope scope(&probe);
    ProbeSiamese("s", x, w, 2);
  }
  const auto explanation = probe.TakeOut(0);
  ASSERT_TRUE(explanation.has_value());
  EXPECT_THAT(NamesOf(*explanation), ElementsAre("head 0", "head 1"));
  const at::Tensor expected = (x[0][2] * w[2] + x[0][3] * w[3]).flatten();
  EXPECT_TRUE(at::tensor(explanation->maps[1].values).allclose(expected));
}

TEST(AttentionMapsTest, AnExplicitMapFallsOffFromTheCentre) {
  AttentionProbe probe({ExplanationWish{"e", 1}});
  {
    const AttentionProbe::Scope scope(&probe);
    ProbeExplicit("e", at::randn({1, 3, 5, 7}), "gaussian", 0.3);
  }
  const auto explanation = probe.TakeOut(0);
  ASSERT_TRUE(explanation.has_value());
  const AttentionMap& map = explanation->maps.at(0);
  EXPECT_EQ(map.name, "centre");
  ASSERT_EQ(map.height, 5);
  ASSERT_EQ(map.width, 7);
  const auto max = std::max_element(map.values.begin(), map.values.end());
  EXPECT_GT(*max, 0);
  EXPECT_LT(map.values[2 * 7], map.values[2 * 7 + 2]);
  EXPECT_LT(map.values[2 * 7 + 2], map.values[2 * 7 + 3]);
}

TEST(AttentionMapsTest, ExplicitMapsOfHeadsAreNamedByHead) {
  AttentionProbe probe({ExplanationWish{"e", 2}});
  {
    const AttentionProbe::Scope scope(&probe);
    ProbeExplicit("e", at::randn({1, 3, 5, 7}), 8,
                  [](const at::Tensor& values, int64_t head) { return values.mul(head + 1); });
  }
  const auto explanation = probe.TakeOut(0);
  ASSERT_TRUE(explanation.has_value());
  EXPECT_EQ(explanation->available, 8);
  EXPECT_THAT(NamesOf(*explanation), ElementsAre("centre head 0", "centre head 1"));
  EXPECT_EQ(explanation->maps[1].values[2 * 7 + 3], 2);
}

}  // namespace
}  // namespace saccade::models
