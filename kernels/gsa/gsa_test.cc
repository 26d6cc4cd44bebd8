// Compares the operator on tensors with the differentiable reference in float64, and checks its properties.
#include "kernels/gsa/gsa.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/einsum.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "kernels/common/testing/tensors.h"
#include "kernels/gsa/gsa_impl.h"

namespace saccade::kernels {
namespace {

using testing::HasSubstr;

struct Case {
  explicit Case(unsigned seed) {
    std::mt19937 random(seed);
    const auto pick = [&](int from, int to) {
      return std::uniform_int_distribution<int64_t>(from, to)(random);
    };
    heads = pick(1, 4);
    channels = pick(1, 40);
    keys = heads * pick(1, 18);
    values = heads * pick(1, 18);
    shape = {pick(1, 3), channels, pick(1, 33), pick(1, 33)};
    memory = static_cast<Memory>(pick(0, 5));
    content = std::vector<std::string>{"global", "global", "axial", "none"}[pick(0, 3)];
    column = content == "axial" || pick(0, 3) != 0;
    row = content == "axial" || pick(0, 3) != 0;
    if (content == "none" && !column && !row) row = true;
    middle = column && row && pick(0, 1) != 0;
    affine = pick(0, 2) != 0;
  }
  std::vector<int64_t> Shape(int64_t map_channels) const {
    return {shape[0], map_channels, shape[2], shape[3]};
  }
  std::string Name() const {
    std::ostringstream text;
    text << at::IntArrayRef(shape) << " heads=" << heads << " keys=" << keys << " values=" << values
         << " memory=" << static_cast<int>(memory) << " content=" << content << " column=" << column
         << " row=" << row << " middle=" << middle << " affine=" << affine;
    return text.str();
  }
  std::vector<int64_t> shape;
  int64_t heads, channels, keys, values;
  Memory memory;
  std::string content;
  bool column, row, middle, affine;
};

// All arguments of the operator and the module except maps.
struct Weights {
  Weights(const Case& c, at::ScalarType dtype) {
    const auto matrix = [&](int64_t rows, int64_t columns, double divisor) {
      return RandomTensor({rows, columns}, dtype) / std::sqrt(divisor);
    };
    const auto fan_in = static_cast<double>(c.channels);
    query = matrix(c.keys, c.channels, fan_in);
    key = matrix(c.keys, c.channels, fan_in);
    value = matrix(c.values, c.channels, fan_in);
    const int64_t head = c.keys / c.heads;
    if (c.column) {
      column = matrix(2 * c.shape[2] + 1, head, static_cast<double>(c.shape[2] * head));
    }
    if (c.row) row = matrix(2 * c.shape[3] - 1, head, static_cast<double>(c.shape[3] * head));
    if (c.middle) {
      middle_scale = RandomTensor({c.values}, dtype);
      middle_shift = RandomTensor({c.values}, dtype);
    }
    if (!c.affine) return;
    query_bias = RandomTensor({c.keys}, dtype);
    key_bias = RandomTensor({c.keys}, dtype);
    value_bias = RandomTensor({c.values}, dtype);
    scale = RandomTensor({c.values}, dtype);
    shift = RandomTensor({c.values}, dtype);
  }
  Weights To(at::ScalarType dtype) const {
    Weights other = *this;
    for (at::Tensor* t : {&other.query, &other.value}) *t = t->to(dtype);
    for (OptionalTensor* t :
         {&other.key, &other.query_bias, &other.key_bias, &other.value_bias, &other.column, &other.row,
          &other.middle_scale, &other.middle_shift, &other.scale, &other.shift}) {
      if (t->has_value()) *t = (*t)->to(dtype);
    }
    return other;
  }
  at::Tensor query, value;
  OptionalTensor key, query_bias, key_bias, value_bias, column, row, middle_scale, middle_shift, scale, shift;
};

at::Tensor Served(const at::Tensor& x, const Weights& w, const Case& c, const OptionalTensor& valid = {}) {
  return gsa_module(x, {w.query, w.key, w.value, w.query_bias, w.key_bias, w.value_bias, w.scale, w.shift},
                    {c.heads, w.column, w.row, w.middle_scale, w.middle_shift, c.content}, valid);
}

at::Tensor Reference(const at::Tensor& x, const Weights& w, const Case& c) {
  return GsaModuleReference(
      x, {w.query, w.key, w.value, w.query_bias, w.key_bias, w.value_bias, w.scale, w.shift},
      {c.heads, w.column, w.row, w.middle_scale, w.middle_shift, c.content}, {});
}

// The formulas written directly in ATen operators, every step in the maps' own type.
at::Tensor Composed(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Weights& w,
                    const Case& c) {
  const auto split = [&](const at::Tensor& t) { return t.unflatten(1, {c.heads, -1}); };
  const auto positions = [](const at::Tensor& r, int64_t size) {
    const at::Tensor i = at::arange(size, at::kLong);
    return r.index({i.unsqueeze(0) - i.unsqueeze(1) + r.size(0) / 2});
  };
  at::Tensor y;
  const bool axial = c.content == "axial";
  if (c.column) {
    at::Tensor s = at::einsum("bnkxy,xik->bnyxi", {split(q), positions(*w.column, q.size(2))});
    if (axial) s = (s + at::einsum("bnkxy,bnkiy->bnyxi", {split(q), split(k)})).softmax(-1);
    y = at::einsum("bnyxi,bnviy->bnvxy", {s, split(v)}).flatten(1, 2);
    if (c.middle) y = y * w.middle_scale->view({-1, 1, 1}) + w.middle_shift->view({-1, 1, 1});
  }
  if (c.row) {
    at::Tensor s = at::einsum("bnkxy,yik->bnxyi", {split(q), positions(*w.row, q.size(3))});
    if (axial) s = (s + at::einsum("bnkxy,bnkxi->bnxyi", {split(q), split(k)})).softmax(-1);
    y = at::einsum("bnxyi,bnvxi->bnvxy", {s, split(c.column ? y : v)}).flatten(1, 2);
  }
  if (c.content != "global") return y;
  const at::Tensor context =
      at::einsum("bnkp,bnvp->bnkv", {split(k).flatten(3).softmax(-1), split(v).flatten(3)});
  const at::Tensor content = at::einsum("bnkxy,bnkv->bnvxy", {split(q), context}).flatten(1, 2);
  return y.defined() ? y + content : content;
}

at::Tensor ComposedModule(const at::Tensor& x, const Weights& w, const Case& c) {
  const auto project = [&](const at::Tensor& weight, const OptionalTensor& bias) {
    const at::Tensor y = at::matmul(weight, x.flatten(2)).unflatten(2, x.sizes().slice(2));
    return bias.has_value() ? y + bias->view({-1, 1, 1}) : y;
  };
  const at::Tensor y = Composed(project(w.query, w.query_bias), project(*w.key, w.key_bias),
                                project(w.value, w.value_bias), w, c);
  return w.scale.has_value() ? y * w.scale->view({-1, 1, 1}) + w.shift->view({-1, 1, 1}) : y;
}

class GsaTypes : public testing::TestWithParam<at::ScalarType> {};

TEST_P(GsaTypes, ModuleMatchesTheReference) {
  for (unsigned seed = 0; seed < 24; ++seed) {
    const Case c(seed);
    SCOPED_TRACE(c.Name());
    const Weights weights(c, GetParam());
    const at::Tensor x = RandomMap(c.shape, GetParam(), c.memory);
    const at::Tensor expected = Reference(x.to(at::kDouble), weights.To(at::kDouble), c);
    const at::Tensor composed = ComposedModule(x, weights, c);
    const at::Tensor got = Served(x, weights, c);
    EXPECT_EQ(got.scalar_type(), GetParam());
    EXPECT_LE(RelativeError(got, expected), AllowedError(GetParam(), RelativeError(composed, expected)));
  }
}

TEST_P(GsaTypes, OperatorMatchesTheReference) {
  for (unsigned seed = 100; seed < 124; ++seed) {
    const Case c(seed);
    SCOPED_TRACE(c.Name());
    const Weights w(c, GetParam());
    const at::Tensor q = RandomMap(c.Shape(c.keys), GetParam(), c.memory);
    const at::Tensor k = RandomMap(c.Shape(c.keys), GetParam(), Memory::kChannelsLast);
    const at::Tensor v = RandomMap(c.Shape(c.values), GetParam(), Memory::kSlicedChannels);
    const auto wide = [](const OptionalTensor& t) {
      return t.has_value() ? t->to(at::kDouble) : OptionalTensor();
    };
    const Weights exact = w.To(at::kDouble);
    const at::Tensor expected = GsaReference(
        *wide(q), wide(k), *wide(v),
        {c.heads, exact.column, exact.row, exact.middle_scale, exact.middle_shift, c.content}, {});
    const at::Tensor composed = Composed(q, k, v, w, c);
    const at::Tensor got =
        gsa(q, k, v, {c.heads, w.column, w.row, w.middle_scale, w.middle_shift, c.content});
    EXPECT_LE(RelativeError(got, expected), AllowedError(GetParam(), RelativeError(composed, expected)));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, GsaTypes, testing::Values(at::kFloat, at::kBFloat16, at::kDouble));

// Shapes with 8 heads, as in the paper's networks.
Case Served8(int64_t batch, int64_t channels, int64_t height, int64_t width, const char* content) {
  Case c(0);
  c.shape = {batch, channels, height, width};
  c.heads = 8;
  c.channels = c.keys = c.values = channels;
  c.content = content;
  c.column = c.row = c.middle = c.affine = true;
  return c;
}

// Compares a map of one row with the paper's equation 2, written without the reference.
TEST(GsaTest, RowAttentionIsEquation2) {
  constexpr int64_t kWidth = 5;
  const at::Tensor q = RandomTensor({1, 3, 1, kWidth}, at::kDouble);
  const at::Tensor v = RandomTensor({1, 2, 1, kWidth}, at::kDouble);
  const at::Tensor r = RandomTensor({2 * kWidth - 1, 3}, at::kDouble);
  const at::Tensor got = gsa(q, {}, v, {.row_embedding = r, .content = "none"});
  at::Tensor expected = at::zeros({1, 2, 1, kWidth}, at::kDouble);
  for (int64_t b = 0; b < kWidth; ++b) {
    for (int64_t delta = -b; b + delta < kWidth; ++delta) {
      const at::Tensor score = q.select(3, b).flatten().dot(r[delta + kWidth - 1]);
      expected.select(3, b) += score * v.select(3, b + delta);
    }
  }
  EXPECT_LE(RelativeError(got, expected), 1e-14);
}

TEST(GsaTest, TheModuleIsTheOperatorOnProjections) {
  const Case c = Served8(2, 24, 6, 9, "global");
  const Weights w(c, at::kDouble);
  const at::Tensor x = RandomTensor(c.shape, at::kDouble);
  const auto per_channel = [](const at::Tensor& t) { return t.view({-1, 1, 1}); };
  const auto project = [&](const at::Tensor& weight, const OptionalTensor& bias) {
    return at::matmul(weight, x.flatten(2)).view(x.sizes()) + per_channel(*bias);
  };
  const at::Tensor bare =
      gsa(project(w.query, w.query_bias), project(*w.key, w.key_bias), project(w.value, w.value_bias),
          {c.heads, w.column, w.row, w.middle_scale, w.middle_shift});
  const at::Tensor got = Served(x, w, c);
  EXPECT_LE(RelativeError(got, bare * per_channel(*w.scale) + per_channel(*w.shift)), 1e-13);
  // Stored as a 1x1 convolution.
  Weights stored = w;
  for (at::Tensor* t : {&stored.query, &stored.value}) *t = t->view({24, 24, 1, 1});
  stored.key = w.key->view({24, 24, 1, 1});
  EXPECT_TRUE(SameBits(got, Served(x, stored, c)));
}

// The keys' bias is the same for all logits of a softmax.
TEST(GsaTest, TheKeysBiasCancels) {
  for (const char* content : {"global", "axial"}) {
    const Case c = Served8(1, 16, 7, 6, content);
    const Weights with(c, at::kDouble);
    Weights without = with;
    without.key_bias.reset();
    const at::Tensor x = RandomTensor(c.shape, at::kDouble);
    EXPECT_LE(RelativeError(Reference(x, without, c), Reference(x, with, c)), 1e-13);
    EXPECT_TRUE(SameBits(Served(x, without, c), Served(x, with, c)));
  }
}

TEST(GsaTest, ALongerEmbeddingChangesNothing) {
  const Case c = Served8(1, 16, 7, 12, "global");
  const Weights w(c, at::kFloat);
  const at::Tensor x = RandomTensor(c.shape, at::kFloat);
  Weights longer = w;
  longer.row = at::randn({2 * 20 - 1, 2});
  longer.row->narrow(0, 20 - 12, 2 * 12 - 1).copy_(*w.row);
  EXPECT_TRUE(SameBits(Served(x, w, c), Served(x, longer, c)));
}

TEST(GsaTest, NarrowInputsTakeFloat32Weights) {
  const Case c = Served8(1, 16, 6, 8, "global");
  const Weights weights(c, at::kBFloat16);
  const at::Tensor x = RandomTensor(c.shape, at::kBFloat16);
  EXPECT_TRUE(SameBits(Served(x, weights, c), Served(x, weights.To(at::kFloat), c)));
}

class GsaSizes : public testing::TestWithParam<Case> {};

TEST_P(GsaSizes, ASampleDoesNotDependOnItsBatchOrTheThreads) {
  const Case& c = GetParam();
  const Weights weights(c, at::kFloat);
  const at::Tensor x = RandomTensor(c.shape, at::kFloat);
  const int threads = at::get_num_threads();
  const at::Tensor whole = Served(x, weights, c);
  for (const int count : {1, 2, 3, 7}) {
    at::set_num_threads(count);
    EXPECT_TRUE(SameBits(Served(x, weights, c), whole)) << count << " threads";
    for (int64_t b = 0; b < c.shape[0]; ++b) {
      EXPECT_TRUE(SameBits(Served(x.narrow(0, b, 1), weights, c), whole.narrow(0, b, 1)));
    }
  }
  at::set_num_threads(threads);
}

TEST_P(GsaSizes, PaddingLeavesNoTrace) {
  const Case& c = GetParam();
  Weights weights(c, at::kFloat);
  // The embeddings must reach across the padded map.
  weights.column = at::randn({2 * (c.shape[2] + 3) - 1, c.keys / c.heads}) / c.shape[2];
  weights.row = at::randn({2 * (c.shape[3] + 5) - 1, c.keys / c.heads}) / c.shape[3];
  for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    const at::Tensor x = RandomTensor(c.shape, at::kFloat).contiguous(format);
    // The padding must not be read.
    at::Tensor padded =
        at::zeros({c.shape[0], c.shape[1], c.shape[2] + 3, c.shape[3] + 5}).contiguous(format);
    padded.fill_(std::numeric_limits<double>::quiet_NaN());
    const auto crop = [&](const at::Tensor& t) {
      return t.narrow(2, 0, c.shape[2]).narrow(3, 0, c.shape[3]);
    };
    crop(padded).copy_(x);
    const at::Tensor valid = at::tensor({c.shape[2], c.shape[3]}, at::kLong).expand({c.shape[0], 2});
    const at::Tensor got = Served(padded, weights, c, valid);
    EXPECT_TRUE(SameBits(crop(got), Served(x, weights, c)));
    at::Tensor beside = got.clone();
    crop(beside).zero_();
    EXPECT_EQ(beside.abs().max().item<double>(), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, GsaSizes,
                         testing::Values(Served8(3, 16, 7, 9, "global"), Served8(2, 64, 33, 20, "global"),
                                         Served8(2, 32, 12, 17, "axial"), Served8(2, 32, 17, 12, "none")));

// Sums with more terms than in the maps above.
TEST(GsaTest, LongLinesKeepTheirPrecision) {
  for (const char* content : {"global", "axial", "none"}) {
    for (const auto& [height, width] : {std::pair(3, 190), std::pair(190, 3)}) {
      const Case c = Served8(2, 24, height, width, content);
      const Weights w(c, at::kFloat);
      const at::Tensor x = RandomTensor(c.shape, at::kFloat);
      const at::Tensor expected = Reference(x.to(at::kDouble), w.To(at::kDouble), c);
      EXPECT_LE(RelativeError(Served(x, w, c), expected),
                AllowedError(at::kFloat, RelativeError(ComposedModule(x, w, c), expected)))
          << content << " " << height;
    }
  }
}

// Every sample has its own extent, in the reference too.
TEST(GsaTest, TheReferenceKeepsToValidExtents) {
  for (const char* content : {"global", "axial", "none"}) {
    const Case c = Served8(3, 16, 8, 7, content);
    const Weights w(c, at::kDouble);
    const at::Tensor x = RandomTensor(c.shape, at::kDouble);
    const at::Tensor valid = at::tensor({8, 7, 5, 3, 0, 2}, at::kLong).view({3, 2});
    const at::Tensor got = Served(x, w, c, valid);
    const at::Tensor expected = GsaModuleReference(
        x, {w.query, w.key, w.value, w.query_bias, w.key_bias, w.value_bias, w.scale, w.shift},
        {c.heads, w.column, w.row, w.middle_scale, w.middle_shift, c.content}, valid);
    EXPECT_LE(RelativeError(got, expected), 1e-13) << content;
    EXPECT_GT(expected[1].abs().max().item<double>(), 0);
    EXPECT_EQ(expected[2].abs().max().item<double>(), 0);
  }
}

TEST(GsaTest, AnEmptyBatchGivesAnEmptyResult) {
  const Case c = Served8(0, 16, 4, 5, "global");
  EXPECT_EQ(Served(at::zeros(c.shape), Weights(c, at::kFloat), c).sizes(), c.shape);
  const at::Tensor none = at::zeros({2, 8, 0, 5});
  EXPECT_EQ(gsa(none, none, none, {.heads = 2}).numel(), 0);
}

TEST(GsaTest, InputsThatRequireGradTakeTheReference) {
  const Case c = Served8(1, 16, 3, 4, "global");
  Weights w(c, at::kDouble);
  w.column->requires_grad_();
  const at::Tensor y = Served(RandomTensor(c.shape, at::kDouble), w, c);
  ASSERT_TRUE(y.requires_grad());
  y.sum().backward();
  EXPECT_EQ(w.column->grad().sizes(), w.column->sizes());
}

TEST(GsaTest, ErrorsNameTheArgumentWhatWasExpectedAndWhatCame) {
  const at::Tensor x = at::zeros({2, 8, 4, 5});
  const auto bare = [&](const at::Tensor& k, const at::Tensor& v, const OptionalTensor& column,
                        const OptionalTensor& row, const char* content = "global", int64_t heads = 2) {
    return ErrorOf([&] { gsa(x, k, v, {heads, column, row, {}, {}, content}); });
  };
  const at::Tensor column = at::zeros({7, 4});
  const at::Tensor row = at::zeros({9, 4});
  EXPECT_EQ(bare(x, x, column, row), "");
  EXPECT_THAT(bare(x.narrow(0, 0, 1), x, column, row),
              HasSubstr("gsa: argument 'k' should have shape [2, 8, 4, 5], got [1, 8, 4, 5]"));
  EXPECT_THAT(bare(x, x.to(at::kDouble), column, row),
              HasSubstr("argument 'v' should be float32, got float64"));
  EXPECT_THAT(
      bare(x, x, column, row, "global", 3),
      HasSubstr("argument 'q' should have a positive multiple of heads = 3 channels, got [2, 8, 4, 5]"));
  EXPECT_THAT(
      bare(x, x, column.narrow(0, 0, 5), row),
      HasSubstr("argument 'column_embedding' should have at least 7 rows to reach across a map of 4, got 5"));
  EXPECT_THAT(
      bare(x, x, column, row.narrow(0, 0, 7)),
      HasSubstr("argument 'row_embedding' should have at least 9 rows to reach across a map of 5, got 7"));
  EXPECT_THAT(
      bare(x, x, at::zeros({8, 4}), row),
      HasSubstr("argument 'column_embedding' should be [2 L - 1, 4], an odd number of rows, got [8, 4]"));
  EXPECT_THAT(bare(x, x, column, at::zeros({9, 8})), HasSubstr("should be [2 L - 1, 4]"));
  EXPECT_THAT(bare(x, x, column.to(at::kDouble), row),
              HasSubstr("argument 'column_embedding' should be float32, got float64"));
  EXPECT_THAT(bare(x, x, {}, {}, "none"), HasSubstr("argument 'content' should not be none without"));
  EXPECT_THAT(bare(x, x, column, {}, "axial"), HasSubstr("got only column_embedding"));
  EXPECT_THAT(bare(x, x, column, row, "local"),
              HasSubstr("argument 'content' should be global, axial or none, got 'local'"));
  EXPECT_THAT(ErrorOf([&] { gsa(x, {}, x, {2, column, row}); }), HasSubstr("argument 'k' should be given"));
  EXPECT_THAT(ErrorOf([&] { gsa(x, x, x, {2, column, {}, at::zeros({8}), at::zeros({8})}); }),
              HasSubstr("argument 'middle_scale' should be given only with both column_embedding and "
                        "row_embedding"));
  EXPECT_THAT(
      ErrorOf([&] { gsa(x, x, x, {2, column, row, {}, at::zeros({8})}); }),
      HasSubstr(
          "'middle_scale' and 'middle_shift' should be given both or neither, got only 'middle_shift'"));
  EXPECT_THAT(ErrorOf([&] { gsa(x[0], x[0], x[0], {.heads = 2}); }), HasSubstr("argument 'q' should"));
  const at::Tensor volume = x.unsqueeze(2);
  EXPECT_THAT(ErrorOf([&] { gsa(volume, volume, volume, {.heads = 2}); }),
              HasSubstr("should be [B, C, H, W], got [2, 8, 1, 4, 5]"));
  const at::Tensor half = x.to(at::kHalf);
  EXPECT_THAT(ErrorOf([&] { gsa(half, half, half, {.heads = 2}); }), HasSubstr("or float64, got float16"));
  const at::Tensor far = at::tensor({4, 5, 4, 6}, at::kLong).view({2, 2});
  EXPECT_THAT(ErrorOf([&] { gsa(x, x, x, {2, column, row}, far); }),
              HasSubstr("argument 'valid' at [1, 1] should lie in 0..5, got 6"));
}

TEST(GsaTest, ErrorsOfTheModule) {
  const Case c = Served8(2, 16, 4, 5, "global");
  const Weights w(c, at::kFloat);
  const at::Tensor x = at::zeros(c.shape);
  const auto error_of = [&](const auto& change, const OptionalTensor& valid = {}) {
    Weights wrong = w;
    change(wrong);
    return ErrorOf([&] { Served(x, wrong, c, valid); });
  };
  EXPECT_EQ(error_of([](Weights&) {}), "");
  EXPECT_THAT(error_of([](Weights& t) { t.query = at::zeros({16, 15}); }),
              HasSubstr("gsa_module: argument 'query_weight' should have shape [16, 16], got [16, 15]"));
  EXPECT_THAT(error_of([](Weights& t) { t.key = at::zeros({8, 16}); }),
              HasSubstr("argument 'key_weight' should have shape [16, 16], got [8, 16]"));
  EXPECT_THAT(
      error_of([](Weights& t) { t.value = at::zeros({12, 16}); }),
      HasSubstr("argument 'value_weight' should have a positive multiple of heads = 8 rows, got [12, 16]"));
  EXPECT_THAT(error_of([](Weights& t) { t.key.reset(); }),
              HasSubstr("argument 'key_weight' should be given"));
  EXPECT_THAT(error_of([](Weights& t) { t.query_bias = at::zeros({3}); }),
              HasSubstr("argument 'query_bias' should have shape [16], got [3]"));
  EXPECT_THAT(error_of([](Weights& t) { t.shift.reset(); }),
              HasSubstr("'scale' and 'shift' should be given both or neither, got only 'scale'"));
  EXPECT_THAT(error_of([](Weights& t) { t.row = *t.row / 0; }),
              HasSubstr("argument 'row_embedding' should be finite"));
  EXPECT_THAT(error_of([](Weights&) {}, at::zeros({2, 3}, at::kLong)),
              HasSubstr("argument 'valid' should have shape [2, 2], got [2, 3]"));
}

}  // namespace
}  // namespace saccade::kernels
