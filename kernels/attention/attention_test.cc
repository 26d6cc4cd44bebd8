// Compares the operators on tensors with the differentiable reference in float64, and checks their
// properties.
#include "kernels/attention/attention.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/max_pool1d.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/max_pool3d.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/attention/attention_impl.h"
#include "kernels/common/testing/tensors.h"

namespace saccade::kernels {
namespace {

using testing::HasSubstr;

const std::vector<std::string> kKinds = {"softmax", "pool", "1n"};

at::Tensor Pooled(const at::Tensor& x) {
  const auto pool = [&](auto* run) {
    const std::vector<int64_t> two(static_cast<size_t>(x.dim() - 2), 2), none(two.size(), 0),
        one(two.size(), 1);
    return run(x, two, two, none, one, /*ceil_mode=*/true);
  };
  return x.dim() == 3 ? pool(&at::max_pool1d) : x.dim() == 4 ? pool(&at::max_pool2d) : pool(&at::max_pool3d);
}

// The formulas written directly in ATen operators, every step in the maps' own type.
at::Tensor Composed(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                    double scale, const std::string& kind) {
  const auto split = [&](const at::Tensor& x) { return x.flatten(2).unflatten(1, {heads, -1}); };
  const at::Tensor keys = split(kind == "pool" ? Pooled(k) : k);
  const at::Tensor values = split(kind == "pool" ? Pooled(v) : v);
  std::vector<int64_t> shape = q.sizes().vec();
  shape[1] = v.size(1);
  if (kind == "1n") {
    return (at::matmul(at::matmul(values, keys.transpose(2, 3)), split(q)) / keys.size(3))
        .flatten(1, 2)
        .view(shape);
  }
  const at::Tensor logits = at::matmul(keys.transpose(2, 3), split(q)) * scale;
  return at::matmul(values, at::softmax(logits, 2)).flatten(1, 2).view(shape);
}

at::Tensor Project(const at::Tensor& x, const OptionalTensor& weight, const OptionalTensor& bias) {
  if (!weight.has_value()) return x;
  at::Tensor y = at::matmul(weight->flatten(1), x.flatten(2));
  if (bias.has_value()) y = y + bias->unsqueeze(1);
  std::vector<int64_t> shape = x.sizes().vec();
  shape[1] = weight->size(0);
  return y.view(shape);
}

at::Tensor ComposedModule(const at::Tensor& x, const std::string& kind, const AttentionWeights& w,
                          int64_t heads, double scale, bool residual) {
  // "For the attention operator with pooling operation, the spatial sizes of the key matrix K and value
  // matrix V are reduced by 2x2 pooling": before the transforms, as the multiply-adds of the paper's table 2
  // say.
  const bool pools = kind == "pool";
  const at::Tensor keys = pools ? Pooled(x) : x;
  at::Tensor out =
      Composed(Project(x, w.query_weight, w.query_bias), Project(keys, w.key_weight, w.key_bias),
               Project(keys, w.value_weight, w.value_bias), heads, scale, pools ? "softmax" : kind);
  out = Project(out, w.out_weight, {}).flatten(2);
  if (w.scale.has_value()) out = out * w.scale->unsqueeze(1);
  if (w.shift.has_value()) out = out + w.shift->unsqueeze(1);
  std::vector<int64_t> shape = x.sizes().vec();
  shape[1] = out.size(1);
  return residual ? out.view(shape) + x : out.view(shape);
}

std::vector<OptionalTensor*> All(AttentionWeights& w) {
  return {&w.query_weight, &w.key_weight, &w.value_weight, &w.query_bias, &w.key_bias,
          &w.value_bias,   &w.out_weight, &w.scale,        &w.shift};
}

AttentionWeights To(AttentionWeights w, at::ScalarType dtype) {
  for (OptionalTensor* t : All(w)) {
    if (t->has_value()) *t = (*t)->to(dtype);
  }
  return w;
}

at::Tensor Matrix(int64_t rows, int64_t columns, at::ScalarType dtype) {
  return (RandomTensor({rows, columns}, at::kDouble) / std::sqrt(static_cast<double>(columns))).to(dtype);
}

// Returns all nine weights.
AttentionWeights EveryWeight(int64_t channels, int64_t keys, int64_t values, int64_t out,
                             at::ScalarType dtype) {
  return {Matrix(keys, channels, dtype), Matrix(keys, channels, dtype), Matrix(values, channels, dtype),
          RandomTensor({keys}, dtype),   RandomTensor({keys}, dtype),   RandomTensor({values}, dtype),
          Matrix(out, values, dtype),    RandomTensor({out}, dtype),    RandomTensor({out}, dtype)};
}

struct Case {
  explicit Case(unsigned seed) : random(seed) {
    const int64_t dims = Pick(1, 3);
    heads = Pick(1, 3);
    shape = {Pick(1, 3), heads * Pick(1, 30)};
    for (int64_t d = 0; d < dims; ++d) shape.push_back(Pick(1, dims == 1 ? 900 : dims == 2 ? 32 : 11));
    memory = static_cast<Memory>(Pick(0, 5));
    kind = kKinds[seed % 3];
    const int64_t depth = shape[1] / heads;
    scale = kind == "1n" ? 1 : 1 / std::sqrt(static_cast<double>(depth));
  }
  int64_t Pick(int64_t from, int64_t to) { return std::uniform_int_distribution<int64_t>(from, to)(random); }

  // Returns a random set of transforms that fit each other.
  AttentionWeights Weights(at::ScalarType dtype) {
    const int64_t channels = shape[1];
    const int64_t keys = Pick(0, 1) != 0 ? channels : heads * Pick(1, 30);
    const int64_t values = heads * Pick(1, 30);
    AttentionWeights w;
    if (keys != channels || Pick(0, 1) != 0) w.query_weight = Matrix(keys, channels, dtype);
    if (keys != channels || Pick(0, 1) != 0) w.key_weight = Matrix(keys, channels, dtype);
    if (Pick(0, 3) != 0) w.value_weight = Matrix(values, channels, dtype);
    int64_t out = w.value_weight.has_value() ? values : channels;
    if (Pick(0, 1) != 0) {
      const int64_t attended = out;
      out = Pick(0, 1) != 0 ? channels : Pick(1, 120);
      w.out_weight = Matrix(out, attended, dtype);
    }
    const auto bias = [&](const OptionalTensor& weight) {
      return weight.has_value() && Pick(0, 1) != 0 ? OptionalTensor(RandomTensor({weight->size(0)}, dtype))
                                                   : std::nullopt;
    };
    w.query_bias = bias(w.query_weight);
    w.key_bias = bias(w.key_weight);
    w.value_bias = bias(w.value_weight);
    if (Pick(0, 1) != 0) w.scale = RandomTensor({out}, dtype);
    if (Pick(0, 1) != 0) w.shift = RandomTensor({out}, dtype);
    residual = out == channels && Pick(0, 3) != 0;
    const int64_t depth = keys / heads;
    scale = kind == "1n" ? 1 : 1 / std::sqrt(static_cast<double>(depth));
    return w;
  }

  std::string Name() const {
    std::ostringstream text;
    text << kind << " " << at::IntArrayRef(shape) << " heads=" << heads
         << " memory=" << static_cast<int>(memory) << " residual=" << residual;
    return text.str();
  }

  std::mt19937 random;
  std::vector<int64_t> shape;
  std::string kind;
  int64_t heads = 1;
  double scale = 1;
  Memory memory = Memory::kContiguous;
  bool residual = false;
};

at::Tensor Attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads, double scale,
                  const std::string& kind, const OptionalTensor& valid = {}) {
  return kind == "1n" ? attention_1n(q, k, v, heads, valid)
                      : attention(q, k, v, heads, scale, kind == "pool", valid);
}

class AttentionTypes : public testing::TestWithParam<at::ScalarType> {};

TEST_P(AttentionTypes, OperatorsMatchTheReference) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    Case c(seed);
    SCOPED_TRACE(c.Name());
    std::vector<int64_t> value_shape = c.shape;
    value_shape[1] = c.heads * c.Pick(1, 30);
    const at::Tensor q = RandomMap(c.shape, GetParam(), c.memory);
    const at::Tensor k = seed % 4 == 0 ? q : RandomMap(c.shape, GetParam(), Memory::kChannelsLast);
    const at::Tensor v = seed % 8 == 0 ? q : RandomMap(value_shape, GetParam(), Memory::kSlicedChannels);
    const at::Tensor expected = AttentionReference(q.to(at::kDouble), k.to(at::kDouble), v.to(at::kDouble),
                                                   c.heads, c.scale, AttentionKindOf(c.kind), {});
    const at::Tensor composed = Composed(q, k, v, c.heads, c.scale, c.kind);
    const at::Tensor got = Attend(q, k, v, c.heads, c.scale, c.kind);
    EXPECT_EQ(got.scalar_type(), GetParam());
    EXPECT_EQ(got.suggest_memory_format(), v.suggest_memory_format());
    EXPECT_LE(RelativeError(got, expected), AllowedError(GetParam(), RelativeError(composed, expected)));
  }
}

TEST_P(AttentionTypes, ModuleMatchesTheReference) {
  for (unsigned seed = 100; seed < 145; ++seed) {
    Case c(seed);
    const AttentionWeights weights = c.Weights(GetParam());
    SCOPED_TRACE(c.Name());
    const at::Tensor x = RandomMap(c.shape, GetParam(), c.memory);
    const at::Tensor expected =
        AttentionModuleReference(x.to(at::kDouble), AttentionKindOf(c.kind), To(weights, at::kDouble),
                                 c.heads, c.scale, c.residual, {});
    const at::Tensor composed = ComposedModule(x, c.kind, weights, c.heads, c.scale, c.residual);
    const at::Tensor got = attention_module(x, c.kind, weights, c.heads, c.scale, c.residual);
    EXPECT_LE(RelativeError(got, expected), AllowedError(GetParam(), RelativeError(composed, expected)));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, AttentionTypes, testing::Values(at::kFloat, at::kBFloat16, at::kDouble));

// Checks the definition without the reference: a second implementation of the softmax kind, and sums over
// single pairs.
TEST(AttentionTest, SoftmaxIsScaledDotProductAttention) {
  const at::Tensor q = RandomTensor({2, 12, 9, 7}, at::kDouble);
  const at::Tensor k = RandomTensor({2, 12, 9, 7}, at::kDouble);
  const at::Tensor v = RandomTensor({2, 6, 9, 7}, at::kDouble);
  const auto rows = [](const at::Tensor& x) { return x.flatten(2).unflatten(1, {3, -1}).transpose(2, 3); };
  const at::Tensor expected =
      at::scaled_dot_product_attention(rows(q), rows(k), rows(v), {}, 0.0, false, 0.3);
  EXPECT_LE(RelativeError(attention(q, k, v, 3, 0.3), expected.transpose(2, 3).reshape(v.sizes())), 1e-13);
  const at::Tensor pooled =
      at::scaled_dot_product_attention(rows(q), rows(Pooled(k)), rows(Pooled(v)), {}, 0.0, false, 0.3);
  EXPECT_LE(RelativeError(attention(q, k, v, 3, 0.3, true), pooled.transpose(2, 3).reshape(v.sizes())),
            1e-13);
}

TEST(AttentionTest, OneOverNIsTheMeanOfValuesTimesSimilarities) {
  for (const int64_t positions : {5, 40}) {  // fewer than channels, and more
    const at::Tensor q = RandomTensor({1, 8, positions}, at::kDouble);
    const at::Tensor k = RandomTensor({1, 8, positions}, at::kDouble);
    const at::Tensor v = RandomTensor({1, 3, positions}, at::kDouble);
    const at::Tensor similarity = (k[0].unsqueeze(2) * q[0].unsqueeze(1)).sum(0);
    const at::Tensor expected = (v[0].unsqueeze(2) * similarity.unsqueeze(0)).mean(1).unsqueeze(0);
    EXPECT_LE(RelativeError(attention_1n(q, k, v), expected), 1e-14);
  }
}

// However the weights are folded, the module must equal the operator between its transforms.
TEST(AttentionTest, TheModuleIsTheOperatorBetweenItsTransforms) {
  const at::Tensor x = RandomTensor({2, 12, 6, 9}, at::kDouble);
  const auto across = [](const OptionalTensor& t) { return t->view({-1, 1, 1}); };
  for (const std::string& kind : kKinds) {
    for (const int64_t heads : {1, 2}) {
      for (const int64_t values : {6, 20}) {
        const AttentionWeights w = EveryWeight(12, 10, values, 12, at::kDouble);
        const double scale = kind == "1n" ? 1 : 0.4;
        const bool pools = kind == "pool";
        const at::Tensor keys = pools ? Pooled(x) : x;
        const at::Tensor query = Project(x, w.query_weight, w.query_bias);
        const at::Tensor key = Project(keys, w.key_weight, w.key_bias);
        const at::Tensor value = Project(keys, w.value_weight, w.value_bias);
        const at::Tensor attended = pools ? Composed(query, key, value, heads, scale, "softmax")
                                          : Attend(query, key, value, heads, scale, kind);
        const at::Tensor expected =
            Project(attended, w.out_weight, {}) * across(w.scale) + across(w.shift) + x;
        EXPECT_LE(RelativeError(attention_module(x, kind, w, heads, scale), expected), 1e-13) << kind;
        AttentionWeights stored = w;  // as a 1x1 convolution stores them
        for (OptionalTensor* t :
             {&stored.query_weight, &stored.key_weight, &stored.value_weight, &stored.out_weight}) {
          *t = (*t)->unsqueeze(2).unsqueeze(3);
        }
        EXPECT_TRUE(SameBits(attention_module(x, kind, stored, heads, scale),
                             attention_module(x, kind, w, heads, scale)));
      }
    }
  }
}

TEST(AttentionTest, NarrowInputsTakeFloat32Weights) {
  const AttentionWeights weights = EveryWeight(16, 8, 12, 16, at::kBFloat16);
  const at::Tensor x = RandomTensor({1, 16, 6, 8}, at::kBFloat16);
  for (const std::string& kind : kKinds) {
    EXPECT_TRUE(SameBits(attention_module(x, kind, weights, 2),
                         attention_module(x, kind, To(weights, at::kFloat), 2)));
  }
}

// The largest logit is subtracted before the exponential, so large logits do not overflow.
TEST(AttentionTest, LogitsMayBeLarge) {
  const at::Tensor q = RandomTensor({1, 16, 20, 20}, at::kFloat) * 100;
  const at::Tensor k = RandomTensor({1, 16, 20, 20}, at::kFloat) * 100;
  const at::Tensor v = RandomTensor({1, 16, 20, 20}, at::kFloat);
  const at::Tensor expected = attention(q.to(at::kDouble), k.to(at::kDouble), v.to(at::kDouble));
  EXPECT_LE(RelativeError(attention(q, k, v), expected), 1e-2);
}

class AttentionSizes : public testing::TestWithParam<std::tuple<std::vector<int64_t>, std::string>> {
 protected:
  const std::vector<int64_t>& shape() const { return std::get<0>(GetParam()); }
  const std::string& kind() const { return std::get<1>(GetParam()); }
};

TEST_P(AttentionSizes, ASampleDoesNotDependOnItsBatchOrTheThreads) {
  const AttentionWeights weights = EveryWeight(shape()[1], 24, 16, shape()[1], at::kFloat);
  const at::Tensor x = RandomTensor(shape(), at::kFloat);
  const auto module = [&](const at::Tensor& input) { return attention_module(input, kind(), weights, 2, 1); };
  const auto plain = [&](const at::Tensor& input) { return Attend(input, input, input, 2, 0.2, kind()); };
  for (const auto& run : std::vector<std::function<at::Tensor(const at::Tensor&)>>{module, plain}) {
    const int threads = at::get_num_threads();
    const at::Tensor whole = run(x);
    for (const int count : {1, 2, 3}) {
      at::set_num_threads(count);
      EXPECT_TRUE(SameBits(run(x), whole)) << count << " threads";
      EXPECT_TRUE(SameBits(run(x.narrow(0, 0, 1)), whole.narrow(0, 0, 1)));
      const int64_t last = shape()[0] - 1;
      EXPECT_TRUE(SameBits(run(x.narrow(0, last, 1)), whole.narrow(0, last, 1)));
    }
    at::set_num_threads(threads);
  }
}

TEST_P(AttentionSizes, PaddingLeavesNoTrace) {
  const auto& size = shape();
  const AttentionWeights weights = EveryWeight(size[1], 24, 16, size[1], at::kFloat);
  for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    const at::Tensor x = RandomTensor(size, at::kFloat).contiguous(format);
    // The padding must not be read.
    at::Tensor padded = at::zeros({size[0], size[1], size[2] + 3, size[3] + 5}).contiguous(format);
    padded.fill_(std::numeric_limits<double>::quiet_NaN());
    const auto crop = [&](const at::Tensor& t) { return t.narrow(2, 0, size[2]).narrow(3, 0, size[3]); };
    crop(padded).copy_(x);
    const at::Tensor valid = at::tensor({size[2], size[3]}, at::kLong).expand({size[0], 2});
    const at::Tensor got = attention_module(padded, kind(), weights, 2, 1, true, valid);
    EXPECT_TRUE(SameBits(crop(got), attention_module(x, kind(), weights, 2)));
    EXPECT_TRUE(SameBits(crop(Attend(padded, padded, padded, 2, 0.2, kind(), valid)),
                         Attend(x, x, x, 2, 0.2, kind())));
    at::Tensor beside = got.clone();
    crop(beside).zero_();
    EXPECT_EQ(beside.abs().max().item<double>(), 0);
    const at::Tensor reference =
        AttentionModuleReference(padded, AttentionKindOf(kind()), weights, 2, 1, true, valid);
    EXPECT_LE(RelativeError(got, reference.to(at::kDouble)), 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, AttentionSizes,
    testing::Combine(testing::Values(std::vector<int64_t>{5, 16, 3, 2}, std::vector<int64_t>{3, 16, 7, 9},
                                     std::vector<int64_t>{2, 40, 29, 27}, std::vector<int64_t>{7, 6, 40, 31}),
                     testing::ValuesIn(kKinds)));

TEST(AttentionTest, AnEmptyBatchGivesAnEmptyResult) {
  const AttentionWeights weights = EveryWeight(8, 4, 6, 5, at::kFloat);
  for (const std::string& kind : kKinds) {
    EXPECT_EQ(attention_module(at::zeros({0, 8, 4, 5}), kind, weights, 1, 1, false).sizes(),
              at::IntArrayRef({0, 5, 4, 5}));
    const at::Tensor none = at::zeros({2, 8, 0, 5});
    EXPECT_EQ(Attend(none, none, none, 1, 1, kind).sizes(), none.sizes());
  }
}

TEST(AttentionTest, ASampleWithoutPositionsIsZero) {
  const AttentionWeights weights = EveryWeight(8, 4, 6, 8, at::kFloat);
  const at::Tensor x = RandomTensor({2, 8, 4, 5}, at::kFloat);
  const at::Tensor valid = at::tensor({0, 3, 2, 3}, at::kLong).view({2, 2});
  for (const std::string& kind : kKinds) {
    const at::Tensor got = attention_module(x, kind, weights, 2, 1, true, valid);
    EXPECT_EQ(got[0].abs().max().item<double>(), 0);
    EXPECT_GT(got[1].abs().max().item<double>(), 0);
    const at::Tensor reference =
        AttentionModuleReference(x, AttentionKindOf(kind), weights, 2, 1, true, valid);
    EXPECT_LE(RelativeError(got, reference.to(at::kDouble)), 1e-5);
  }
}

TEST(AttentionTest, InputsThatRequireGradTakeTheReference) {
  for (const std::string& kind : kKinds) {
    const at::Tensor x = RandomTensor({1, 4, 3, 3}, at::kDouble).requires_grad_();
    const at::Tensor y = Attend(x, x, x, 2, 0.5, kind);
    ASSERT_TRUE(y.requires_grad());
    y.square().sum().backward();
    EXPECT_EQ(x.grad().sizes(), x.sizes());
  }
}

TEST(AttentionTest, ErrorsNameTheArgumentWhatWasExpectedAndWhatCame) {
  const at::Tensor x = at::zeros({2, 8, 4, 5});
  const auto plain = [](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads = 1,
                        double scale = 1) { return ErrorOf([&] { attention(q, k, v, heads, scale); }); };
  EXPECT_THAT(plain(x, x.narrow(1, 0, 4), x),
              HasSubstr("attention: argument 'k' should have shape [2, 8, 4, 5], got [2, 4, 4, 5]"));
  EXPECT_THAT(ErrorOf([&] { attention_1n(x, x, x.narrow(0, 0, 1)); }),
              HasSubstr("attention_1n: argument 'v' should have shape [2, 8, 4, 5], got [1, 8, 4, 5]"));
  EXPECT_THAT(plain(x, x, x.to(at::kDouble)), HasSubstr("argument 'v' should be float32, got float64"));
  EXPECT_THAT(plain(x, x, x.narrow(1, 0, 6), 4),
              HasSubstr("argument 'v' should have a positive multiple of heads = 4 channels"));
  EXPECT_THAT(plain(x, x, x, 0), HasSubstr("argument 'heads' should be at least 1, got 0"));
  EXPECT_THAT(plain(x, x, x, 1, INFINITY), HasSubstr("argument 'scale' should be finite, got inf"));
  EXPECT_THAT(plain(x.to(at::kHalf), x.to(at::kHalf), x.to(at::kHalf)),
              HasSubstr("argument 'q' should be float32 or bfloat16 or float64, got float16"));
  EXPECT_THAT(plain(x, x.to(at::kMeta), x), HasSubstr("argument 'k' should be on cpu"));
}

TEST(AttentionTest, ErrorsOfTheModuleNameTheArgumentToo) {
  const at::Tensor x = at::zeros({2, 8, 4, 5});
  const auto module = [&](const std::function<void(AttentionWeights&)>& spoil,
                          const std::string& kind = "softmax", int64_t heads = 2, double scale = 1,
                          const OptionalTensor& valid = {}) {
    AttentionWeights weights = EveryWeight(8, 4, 6, 8, at::kFloat);
    spoil(weights);
    return ErrorOf([&] { attention_module(x, kind, weights, heads, scale, true, valid); });
  };
  const auto nothing = [](AttentionWeights&) {};
  EXPECT_THAT(module(nothing, "max"),
              HasSubstr("argument 'kind' should be 'softmax', 'pool' or '1n', got 'max'"));
  EXPECT_THAT(module([](auto& w) { w.query_weight = at::zeros({4, 7}); }),
              HasSubstr("attention_module: argument 'query_weight' should have shape [4, 8], got [4, 7]"));
  EXPECT_THAT(module([](auto& w) { w.key_weight = at::zeros({6, 8}); }),
              HasSubstr("argument 'key_weight' should have shape [4, 8], got [6, 8]"));
  EXPECT_THAT(module([](auto& w) { w.key_weight.reset(); }),
              HasSubstr("argument 'query_weight' should have 8 rows if 'key_weight' is not given, got 4"));
  EXPECT_THAT(
      module([](auto& w) { w.value_weight.reset(); }),
      HasSubstr("argument 'value_bias' should be given only together with 'value_weight', got only the "
                "bias"));
  EXPECT_THAT(module([](auto& w) { w.value_bias = at::zeros({5}); }),
              HasSubstr("argument 'value_bias' should have shape [6], got [5]"));
  EXPECT_THAT(module([](auto& w) { w.out_weight = at::zeros({8, 7}); }),
              HasSubstr("argument 'out_weight' should have shape [8, 6], got [8, 7]"));
  EXPECT_THAT(
      module([](auto& w) { w.out_weight = at::zeros({5, 6}), w.scale.reset(), w.shift.reset(); }),
      HasSubstr("argument 'residual' should be false if the number of result channels differs from x's 8, "
                "got true with 5"));
  EXPECT_THAT(module([](auto& w) { w.scale = at::zeros({7}); }),
              HasSubstr("argument 'scale' should have shape [8], got [7]"));
  EXPECT_THAT(module(nothing, "softmax", 3),
              HasSubstr("argument 'query_weight' should have a positive multiple of heads = 3 rows, got 4"));
  EXPECT_THAT(module(nothing, "1n", 2, 0.5),
              HasSubstr("argument 'logit_scale' should be 1 for kind '1n', got 0.5"));
  EXPECT_THAT(module([](auto& w) { w.value_weight = w.value_weight->to(at::kDouble); }),
              HasSubstr("argument 'value_weight' should be float32, got float64"));
  EXPECT_THAT(module([](auto& w) { (*w.out_weight)[1][2] = std::numeric_limits<double>::quiet_NaN(); }),
              HasSubstr("argument 'out_weight' should be finite, got infinity or NaN"));
  EXPECT_THAT(module(nothing, "pool", 2, 1, at::tensor({4, 5, 4, 6}, at::kLong).view({2, 2})),
              HasSubstr("argument 'valid' at [1, 1] should lie in 0..5, got 6"));
}

}  // namespace
}  // namespace saccade::kernels
