#include "models/layers/position_maps.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/gsa/gsa.h"
#include "models/api/attention_probe.h"

namespace saccade::models {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kChannels = 6;
constexpr int64_t kHeads = 2;

// Positions: the corner, and row 1, column 4 in maps of 5 x 7.
ExplanationWish Wish(int64_t max_maps = 64) { return {"place", max_maps, {{0, 0}, {0.6F, 0.3F}}}; }

template <typename Ask>
Explanation Explained(const ExplanationWish& wish, const Ask& ask) {
  AttentionProbe probe({wish});
  {
    const AttentionProbe::Scope scope(&probe);
    ask();
  }
  return probe.TakeOut(0).value_or(Explanation());
}

std::vector<std::string> NamesOf(const Explanation& explanation) {
  std::vector<std::string> names;
  for (const AttentionMap& map : explanation.maps) names.push_back(map.name);
  return names;
}

at::Tensor ValuesOf(const AttentionMap& map) { return at::tensor(map.values).view({map.height, map.width}); }

// The map's weighted sum of a head's values, [C, H, W]: one result per channel.
at::Tensor Answered(const AttentionMap& map, const at::Tensor& values) {
  return (values * ValuesOf(map)).flatten(1).sum(1);
}

at::Tensor OfHead(const at::Tensor& x, int64_t head) {
  const int64_t channels = x.size(0) / kHeads;
  return x.narrow(0, head * channels, channels);
}

TEST(PositionMapsTest, RegularAttentionAnswersByWhatIsShown) {
  at::manual_seed(1);
  const at::Tensor x = at::randn({1, kChannels, 5, 7});
  const at::Tensor q = at::randn({4, kChannels});
  const at::Tensor q_bias = at::randn({4});
  const at::Tensor k = at::randn({4, kChannels});
  for (const char* kind : {"softmax", "1n"}) {
    kernels::AttentionWeights weights;
    weights.query_weight = q;
    weights.query_bias = q_bias;
    weights.key_weight = k;
    const at::Tensor out = kernels::attention_module(x, kind, weights, kHeads, 1.0, /*residual=*/false)[0];
    const Explanation shown = Explained(Wish(), [&] {
      ProbeDotProducts(
          "place", x,
          {.kind = kind, .query_weight = q, .query_bias = q_bias, .key_weight = k, .heads = kHeads});
    });
    EXPECT_THAT(NamesOf(shown), ElementsAre("position 0 head 0", "position 0 head 1", "position 1 head 0",
                                            "position 1 head 1"));
    EXPECT_EQ(shown.available, 4);
    for (int64_t head = 0; head < kHeads; ++head) {
      const auto map = [&](int64_t position) {
        return shown.maps.at(static_cast<size_t>(2 * position + head));
      };
      const at::Tensor values = OfHead(x[0], head);
      const at::Tensor expected = OfHead(out, head);
      EXPECT_TRUE(Answered(map(0), values).allclose(expected.select(1, 0).select(1, 0), 1e-4, 1e-5)) << kind;
      EXPECT_TRUE(Answered(map(1), values).allclose(expected.select(1, 1).select(1, 4), 1e-4, 1e-5)) << kind;
    }
  }
}

TEST(PositionMapsTest, OfPooledAttentionTheWindowsAreShown) {
  at::manual_seed(2);
  const at::Tensor x = at::randn({1, kChannels, 5, 7});
  const at::Tensor out = kernels::attention_module(x, "pool", {}, kHeads, 1.0, /*residual=*/false)[0];
  const Explanation shown =
      Explained(Wish(), [&] { ProbeDotProducts("place", x, {.kind = "pool", .heads = kHeads}); });
  const at::Tensor pooled = at::max_pool2d(x, {2, 2}, {2, 2}, {0, 0}, {1, 1}, /*ceil_mode=*/true)[0];
  ASSERT_EQ(shown.maps.size(), 4U);
  EXPECT_EQ(shown.maps[3].height, 3);
  EXPECT_EQ(shown.maps[3].width, 4);
  EXPECT_TRUE(Answered(shown.maps[3], OfHead(pooled, 1))
                  .allclose(OfHead(out, 1).select(1, 1).select(1, 4), 1e-4, 1e-5));
}

TEST(PositionMapsTest, OnlyWhatIsPictureAndOnlyAsManyAsAreWanted) {
  at::manual_seed(3);
  const at::Tensor x = at::randn({1, kChannels, 5, 7});
  const at::Tensor valid = at::tensor({3, 4}, at::kLong).view({1, 2});
  const DotProducts how{.kind = "softmax", .heads = kHeads};
  const Explanation shown = Explained(Wish(3), [&] { ProbeDotProducts("place", x, how, valid); });
  const at::Tensor cut = x.narrow(2, 0, 3).narrow(3, 0, 4).contiguous();
  const Explanation alone = Explained(Wish(), [&] { ProbeDotProducts("place", cut, how); });
  ASSERT_EQ(shown.maps.size(), 3U);
  EXPECT_EQ(shown.available, 4);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(shown.maps[i].values, alone.maps[i].values);
}

TEST(PositionMapsTest, GlobalSelfAttentionAnswersByWhatIsShown) {
  at::manual_seed(4);
  const at::Tensor x = at::randn({1, kChannels, 5, 7});
  const at::Tensor query = at::randn({4, kChannels});
  const at::Tensor key = at::randn({4, kChannels});
  // The embeddings cover larger maps than this one.
  const at::Tensor columns = at::randn({13, 2});
  const at::Tensor rows = at::randn({15, 2});
  // The biases are those of folded batch norms.
  const at::Tensor query_bias = at::randn({4});
  const at::Tensor key_bias = at::randn({4});
  const auto project = [&](const at::Tensor& weight, const at::Tensor& bias) {
    return at::einsum("kc,bcxy->bkxy", {weight, x}) + bias.view({-1, 1, 1});
  };
  for (const std::string content : {"global", "axial", "none"}) {
    const bool keyed = content != "none";
    const at::Tensor out = kernels::gsa(
        project(query, query_bias), keyed ? std::optional(project(key, key_bias)) : std::nullopt, x,
        {.heads = kHeads, .column_embedding = columns, .row_embedding = rows, .content = content})[0];
    const Explanation shown = Explained(Wish(), [&] {
      ProbeGlobal("place", x,
                  {.content = content,
                   .query_weight = query,
                   .query_bias = query_bias,
                   .key_weight = keyed ? std::optional(key) : std::nullopt,
                   .key_bias = keyed ? std::optional(key_bias) : std::nullopt,
                   .column_embedding = columns,
                   .row_embedding = rows,
                   .heads = kHeads});
    });
    const size_t maps = content == "global" ? 4 : 3;
    ASSERT_EQ(shown.maps.size(), 4 * maps);
    const auto map = [&](size_t index) { return shown.maps[3 * maps + index]; };
    const at::Tensor values = OfHead(x[0], 1);
    at::Tensor answered = Answered(map(maps - 3), values);
    if (content == "global") {
      EXPECT_EQ(map(0).name, "position 1 head 1 content");
      answered = answered + Answered(map(0), values);
    }
    EXPECT_TRUE(answered.allclose(OfHead(out, 1).select(1, 1).select(1, 4), 1e-4, 1e-4)) << content;
    EXPECT_EQ(map(maps - 3).name, "position 1 head 1 axial");
    EXPECT_EQ(map(maps - 2).name, "position 1 head 1 column");
    EXPECT_EQ(map(maps - 1).name, "position 1 head 1 row");
    // In the position's own column both factors are those of the position.
    const at::Tensor own = ValuesOf(map(maps - 2)) * ValuesOf(map(maps - 1))[0][4];
    EXPECT_TRUE(ValuesOf(map(maps - 3)).narrow(1, 4, 1).allclose(own)) << content;
    if (content == "axial") {
      EXPECT_NEAR(ValuesOf(map(0)).sum().item<float>(), 1, 1e-4);
    }
  }
}

TEST(PositionMapsTest, GlobalSelfAttentionAlongOneAxisAnswersByWhatIsShown) {
  at::manual_seed(5);
  const at::Tensor x = at::randn({1, kChannels, 5, 7});
  const at::Tensor query = at::randn({4, kChannels});
  const at::Tensor q = at::einsum("kc,bcxy->bkxy", {query, x});
  const std::optional<at::Tensor> embedding = at::randn({15, 2});
  for (const bool along_columns : {true, false}) {
    const std::optional<at::Tensor> columns = along_columns ? embedding : std::nullopt;
    const std::optional<at::Tensor> rows = along_columns ? std::nullopt : embedding;
    const at::Tensor out = kernels::gsa(
        q, std::nullopt, x,
        {.heads = kHeads, .column_embedding = columns, .row_embedding = rows, .content = "none"})[0];
    const Explanation shown = Explained(Wish(), [&] {
      ProbeGlobal("place", x,
                  {.content = "none",
                   .query_weight = query,
                   .column_embedding = columns,
                   .row_embedding = rows,
                   .heads = kHeads});
    });
    ASSERT_EQ(shown.maps.size(), 4U);
    EXPECT_EQ(shown.maps[3].name, std::string("position 1 head 1 ") + (along_columns ? "column" : "row"));
    const at::Tensor values = OfHead(x[0], 1);
    const at::Tensor seen = along_columns ? values.narrow(2, 4, 1) : values.narrow(1, 1, 1);
    EXPECT_TRUE(Answered(shown.maps[3], seen).allclose(OfHead(out, 1).select(1, 1).select(1, 4), 1e-4, 1e-4));
  }
}

}  // namespace
}  // namespace saccade::models
