// Compares the operator on tensors with the differentiable reference in float64, and checks its properties.
#include "kernels/kao/kao.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/common/testing/tensors.h"
#include "kernels/kao/kao_impl.h"

namespace saccade::kernels {
namespace {

using testing::HasSubstr;

struct Weights {
  std::vector<OptionalTensor*> All() {
    return {&query, &key, &value, &query_bias, &value_bias, &coefficients, &scale, &shift};
  }
  Weights To(at::ScalarType dtype) const {
    Weights other = *this;
    for (OptionalTensor* t : other.All()) {
      if (t->has_value()) *t = (*t)->to(dtype);
    }
    return other;
  }
  KaoWeights Arguments() const {
    return {query, key, value, query_bias, value_bias, coefficients, scale, shift};
  }

  OptionalTensor query = std::nullopt;
  OptionalTensor key = std::nullopt;
  OptionalTensor value = std::nullopt;
  OptionalTensor query_bias = std::nullopt;
  OptionalTensor value_bias = std::nullopt;
  OptionalTensor coefficients = std::nullopt;
  OptionalTensor scale = std::nullopt;
  OptionalTensor shift = std::nullopt;
};

at::Tensor Module(const at::Tensor& x, std::string_view kind, const Weights& w, int64_t heads, bool residual,
                  const OptionalTensor& valid = {}) {
  return kao_module(x, kind, w.Arguments(), heads, residual, valid);
}

at::Tensor Exact(const at::Tensor& x, std::string_view kind, const Weights& weights, int64_t heads,
                 bool residual) {
  const Weights w = weights.To(at::kDouble);
  return KaoModuleReference({x.to(at::kDouble), kind, w.Arguments(), heads, residual, {}});
}

// The formulas written directly in ATen operators, every step in the input's own type.
at::Tensor ComposedAttention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                             const OptionalTensor& coefficients) {
  const auto split = [&](const at::Tensor& t) { return t.unflatten(1, {heads, -1}); };
  at::Tensor e = at::matmul(split(k).transpose(-2, -1), split(q));
  if (coefficients.has_value()) e = e * coefficients->view({heads, 1, 1});
  return at::matmul(split(v), at::softmax(e, -2)).flatten(1, 2);
}

at::Tensor Averages(const at::Tensor& x) { return at::cat({x.mean(2), x.mean(3)}, 2); }

at::Tensor Composed(std::string_view kind, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                    int64_t heads, const OptionalTensor& coefficients) {
  if (kind == "kv") {
    const at::Tensor out = ComposedAttention(q.flatten(2), Averages(k), Averages(v), heads, coefficients);
    return out.unflatten(2, {q.size(2), q.size(3)});
  }
  const at::Tensor out = ComposedAttention(Averages(q), Averages(k), Averages(v), heads, coefficients);
  return out.narrow(2, q.size(3), q.size(2)).unsqueeze(3) + out.narrow(2, 0, q.size(3)).unsqueeze(2);
}

// Transforms every whole map.
at::Tensor ComposedModule(std::string_view kind, const at::Tensor& x, const Weights& w, int64_t heads,
                          bool residual) {
  const auto transform = [&](const OptionalTensor& weight, const OptionalTensor& bias) {
    at::Tensor map = x.flatten(2);
    if (weight.has_value()) map = at::matmul(*weight, map);
    if (bias.has_value()) map = map + bias->unsqueeze(1);
    return map.unflatten(2, {x.size(2), x.size(3)});
  };
  at::Tensor out = Composed(kind, transform(w.query, w.query_bias), transform(w.key, {}),
                            transform(w.value, w.value_bias), heads, w.coefficients);
  if (w.scale.has_value()) out = out * w.scale->view({-1, 1, 1});
  if (w.shift.has_value()) out = out + w.shift->view({-1, 1, 1});
  return residual ? out + x : out;
}

struct Case {
  Case(unsigned seed, at::ScalarType type) : random(seed), dtype(type) {
    kind = seed % 2 == 0 ? "kv" : "qkv";
    heads = Pick(1, 4);
    shape = {Pick(1, 3), heads * Pick(1, 30), Pick(1, 33), Pick(1, 33)};
    if (seed % 7 == 0) shape[3] = 1;
    if (seed % 11 == 0) shape[2] = shape[3] = 1;
    memory = static_cast<Memory>(Pick(0, 5));
  }
  int64_t Pick(int from, int to) { return std::uniform_int_distribution<int64_t>(from, to)(random); }
  OptionalTensor Maybe(at::IntArrayRef size, double divisor) {
    if (Pick(0, 1) == 0) return {};
    return (RandomTensor(size, at::kDouble) / divisor).to(dtype);
  }
  // Returns random weights, and sets the channel counts to match.
  Weights RandomWeights() {
    const int64_t channels = shape[1];
    const double narrow = std::sqrt(static_cast<double>(channels));
    Weights w;
    if (Pick(0, 1) == 0) {
      keys = heads * Pick(1, 20);
      w.query = (RandomTensor({keys, channels}, at::kDouble) / narrow).to(dtype);
      w.key = (RandomTensor({keys, channels}, at::kDouble) / narrow).to(dtype);
    } else {
      keys = channels;
      (Pick(0, 1) == 0 ? w.query : w.key) = Maybe({channels, channels}, narrow);
    }
    residual = Pick(0, 1) == 0;
    values = residual ? channels : heads * Pick(1, 20);
    w.value = Maybe({values, channels}, narrow);
    if (!w.value.has_value()) values = channels;
    w.query_bias = Maybe({keys}, 1);
    w.value_bias = Maybe({values}, 1);
    w.coefficients = Maybe({heads}, 1);
    w.scale = Maybe({values}, 1);
    w.shift = Maybe({values}, 1);
    return w;
  }
  std::string Name() const {
    std::ostringstream text;
    text << kind << " " << at::IntArrayRef(shape) << " heads=" << heads << " keys=" << keys
         << " values=" << values << " memory=" << static_cast<int>(memory) << " residual=" << residual;
    return text.str();
  }
  std::mt19937 random;
  at::ScalarType dtype;
  std::string kind;
  std::vector<int64_t> shape;
  int64_t heads = 1, keys = 0, values = 0;
  Memory memory = Memory::kContiguous;
  bool residual = false;
};

class KaoTypes : public testing::TestWithParam<at::ScalarType> {};

TEST_P(KaoTypes, ModuleMatchesTheReference) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    at::manual_seed(seed);
    Case c(seed, GetParam());
    const Weights weights = c.RandomWeights();
    SCOPED_TRACE(c.Name());
    const at::Tensor x = RandomMap(c.shape, GetParam(), c.memory);
    const at::Tensor expected = Exact(x, c.kind, weights, c.heads, c.residual);
    const at::Tensor composed = ComposedModule(c.kind, x, weights, c.heads, c.residual);
    const at::Tensor got = Module(x, c.kind, weights, c.heads, c.residual);
    EXPECT_EQ(got.scalar_type(), GetParam());
    EXPECT_LE(RelativeError(got, expected), AllowedError(GetParam(), RelativeError(composed, expected)));
  }
}

TEST_P(KaoTypes, OperatorMatchesTheReference) {
  for (unsigned seed = 100; seed < 135; ++seed) {
    at::manual_seed(seed);
    Case c(seed, GetParam());
    SCOPED_TRACE(c.Name());
    std::vector<int64_t> value_shape = c.shape;
    value_shape[1] = c.heads * c.Pick(1, 20);
    // Coefficients of about one: with large ones, a softmax amplifies rounding errors without bound, both in
    // the kernel and in the composition.
    const double narrow = std::sqrt(static_cast<double>(c.shape[1]) / static_cast<double>(c.heads));
    const at::Tensor k = RandomMap(c.shape, GetParam(), Memory::kChannelsLast) / narrow;
    const at::Tensor q = seed % 3 == 0 ? k : RandomMap(c.shape, GetParam(), c.memory);
    const at::Tensor v = seed % 5 == 0 ? k : RandomMap(value_shape, GetParam(), Memory::kSlicedChannels);
    const OptionalTensor coefficients = c.Maybe({c.heads}, 1);
    const OptionalTensor exact_coefficients =
        coefficients.has_value() ? OptionalTensor(coefficients->to(at::kDouble)) : std::nullopt;
    const KaoKind kind = c.kind == "kv" ? KaoKind::kMapQueries : KaoKind::kAverageQueries;
    const at::Tensor expected = KaoReference(
        kind, {q.to(at::kDouble), k.to(at::kDouble), v.to(at::kDouble), c.heads, exact_coefficients, {}});
    const at::Tensor composed = Composed(c.kind, q, k, v, c.heads, coefficients);
    const at::Tensor got = (c.kind == "kv" ? kao_kv : kao_qkv)(q, k, v, c.heads, coefficients, {});
    EXPECT_LE(RelativeError(got, expected), AllowedError(GetParam(), RelativeError(composed, expected)));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, KaoTypes, testing::Values(at::kFloat, at::kBFloat16, at::kDouble));

// Compares the reference itself with equations 14 to 18, number by number.
TEST(KaoTest, TheReferenceIsThePapersFormula) {
  const int64_t h = 2, w = 3;
  const at::Tensor q = RandomTensor({1, 2, h, w}, at::kDouble);
  const at::Tensor k = RandomTensor({1, 2, h, w}, at::kDouble);
  const at::Tensor v = RandomTensor({1, 1, h, w}, at::kDouble);
  const auto entry = [](const at::Tensor& t, int64_t c, int64_t a, int64_t b) {
    return t[0][c][a][b].item<double>();
  };
  // Average j of channel c: of column j, or of row j - w.
  const auto average = [&](const at::Tensor& t, int64_t c, int64_t j) {
    double sum = 0;
    for (int64_t i = 0; i < (j < w ? h : w); ++i) sum += j < w ? entry(t, c, i, j) : entry(t, c, j - w, i);
    return sum / static_cast<double>(j < w ? h : w);
  };
  const auto attend = [&](double first, double second) {
    double total = 0;
    double sum = 0;
    for (int64_t j = 0; j < w + h; ++j) {
      const double e = std::exp(average(k, 0, j) * first + average(k, 1, j) * second);
      total += e;
      sum += e * average(v, 0, j);
    }
    return sum / total;
  };
  const at::Tensor kv = kao_kv(q, k, v);
  const at::Tensor qkv = kao_qkv(q, k, v);
  for (int64_t a = 0; a < h; ++a) {
    for (int64_t b = 0; b < w; ++b) {
      EXPECT_NEAR(entry(kv, 0, a, b), attend(entry(q, 0, a, b), entry(q, 1, a, b)), 1e-14);
      EXPECT_NEAR(
          entry(qkv, 0, a, b),
          attend(average(q, 0, w + a), average(q, 1, w + a)) + attend(average(q, 0, b), average(q, 1, b)),
          1e-14);
    }
  }
}

TEST(KaoTest, TheModuleIsTheOperatorOnTransformedMaps) {
  for (const std::string kind : {"kv", "qkv"}) {
    // With fewer and with more products than the transform needs: folded and not folded.
    for (const int64_t keys : {40, 2}) {
      const at::Tensor x = RandomTensor({2, 12, 6, 9}, at::kDouble);
      const auto matrix = [](int64_t rows) { return RandomTensor({rows, 12}, at::kDouble) / 3; };
      const Weights w = {matrix(keys),
                         matrix(keys),
                         matrix(12),
                         RandomTensor({keys}, at::kDouble),
                         RandomTensor({12}, at::kDouble),
                         RandomTensor({2}, at::kDouble),
                         RandomTensor({12}, at::kDouble),
                         RandomTensor({12}, at::kDouble)};
      const auto map = [&](const OptionalTensor& weight) {
        return at::matmul(*weight, x.flatten(2)).unflatten(2, {6, 9});
      };
      const auto per_channel = [](const OptionalTensor& t) { return t->view({-1, 1, 1}); };
      const at::Tensor attention =
          (kind == "kv" ? kao_kv : kao_qkv)(map(w.query) + per_channel(w.query_bias), map(w.key),
                                            map(w.value) + per_channel(w.value_bias), 2, w.coefficients, {});
      const at::Tensor expected = attention * per_channel(w.scale) + per_channel(w.shift) + x;
      const at::Tensor got = Module(x, kind, w, 2, true);
      EXPECT_LE(RelativeError(got, expected), 1e-13);
      // Stored as 1x1 convolutions.
      Weights stored = w;
      for (OptionalTensor* t : {&stored.query, &stored.key, &stored.value}) *t = (*t)->view({-1, 12, 1, 1});
      EXPECT_TRUE(SameBits(got, Module(x, kind, stored, 2, true)));
    }
  }
}

TEST(KaoTest, NarrowInputsTakeFloat32Weights) {
  Case c(8, at::kBFloat16);
  Weights weights = c.RandomWeights();
  weights.scale = RandomTensor({c.values}, at::kBFloat16);
  const at::Tensor x = RandomMap(c.shape, at::kBFloat16, Memory::kContiguous);
  EXPECT_TRUE(SameBits(Module(x, c.kind, weights, c.heads, c.residual),
                       Module(x, c.kind, weights.To(at::kFloat), c.heads, c.residual)));
}

class KaoSizes : public testing::TestWithParam<std::vector<int64_t>> {
 protected:
  static Weights SomeWeights(int64_t channels) {
    Weights w;
    const double narrow = std::sqrt(static_cast<double>(channels));
    w.query = RandomTensor({channels, channels}, at::kFloat) / narrow;
    w.value = RandomTensor({channels, channels}, at::kFloat) / narrow;
    w.query_bias = RandomTensor({channels}, at::kFloat);
    w.shift = RandomTensor({channels}, at::kFloat);
    return w;
  }
};

TEST_P(KaoSizes, ASampleDoesNotDependOnItsBatchOrTheThreads) {
  const auto& shape = GetParam();
  const Weights weights = SomeWeights(shape[1]);
  for (const std::string kind : {"kv", "qkv"}) {
    for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
      const at::Tensor x = RandomTensor(shape, at::kFloat).contiguous(format);
      const auto run = [&](const at::Tensor& input) { return Module(input, kind, weights, 4, true); };
      const int threads = at::get_num_threads();
      const at::Tensor whole = run(x);
      EXPECT_TRUE(SameBits(run(x), whole));
      for (const int count : {1, 2, 3, 7}) {
        at::set_num_threads(count);
        EXPECT_TRUE(SameBits(run(x), whole)) << count << " threads";
        for (int64_t b = 0; b < shape[0]; ++b) {
          EXPECT_TRUE(SameBits(run(x.narrow(0, b, 1)), whole.narrow(0, b, 1)));
        }
      }
      at::set_num_threads(threads);
    }
  }
}

TEST_P(KaoSizes, PaddingLeavesNoTrace) {
  const auto& shape = GetParam();
  const Weights weights = SomeWeights(shape[1]);
  for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    const at::Tensor x = RandomTensor(shape, at::kFloat).contiguous(format);
    // The padding must not be read.
    at::Tensor padded = at::full({shape[0], shape[1], shape[2] + 3, shape[3] + 5},
                                 std::numeric_limits<double>::quiet_NaN(), at::kFloat)
                            .contiguous(format);
    const auto crop = [&](const at::Tensor& t) { return t.narrow(2, 0, shape[2]).narrow(3, 0, shape[3]); };
    crop(padded).copy_(x);
    const at::Tensor valid = at::tensor({shape[2], shape[3]}, at::kLong).expand({shape[0], 2});
    const auto check = [&](const at::Tensor& got, const at::Tensor& alone) {
      EXPECT_TRUE(SameBits(crop(got), alone));
      at::Tensor beside = got.clone();
      crop(beside).zero_();
      EXPECT_EQ(beside.abs().max().item<double>(), 0);
    };
    for (const std::string kind : {"kv", "qkv"}) {
      check(Module(padded, kind, weights, 4, true, valid), Module(x, kind, weights, 4, true));
    }
    check(kao_kv(padded, padded, padded, 2, {}, valid), kao_kv(x, x, x, 2));
    check(kao_qkv(padded, padded, padded, 2, {}, valid), kao_qkv(x, x, x, 2));
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, KaoSizes,
                         testing::Values(std::vector<int64_t>{3, 16, 7, 9},
                                         std::vector<int64_t>{2, 100, 28, 28},
                                         std::vector<int64_t>{2, 64, 53, 41}));

TEST(KaoTest, ASampleWithoutPositionsIsZero) {
  const at::Tensor x = at::full({2, 4, 5, 6}, std::numeric_limits<double>::quiet_NaN(), at::kFloat);
  const at::Tensor valid = at::tensor({0, 6, 5, 0}, at::kLong).view({2, 2});
  for (const auto& y : {kao_kv(x, x, x, 1, {}, valid), kao_qkv(x, x, x, 1, {}, valid)}) {
    EXPECT_TRUE(SameBits(y, at::zeros_like(x)));
  }
  const at::Tensor grown = at::ones({2, 4, 5, 6}, at::kDouble).requires_grad_();
  kao_kv(grown, grown, grown, 1, {}, valid).sum().backward();
  EXPECT_EQ(grown.grad().abs().max().item<double>(), 0);
}

TEST(KaoTest, AnEmptyBatchGivesAnEmptyResult) {
  const at::Tensor none = at::zeros({0, 8, 4, 5});
  EXPECT_EQ(kao_kv(none, none, none).sizes(), none.sizes());
  EXPECT_EQ(kao_module(none, "qkv", {}).sizes(), none.sizes());
  EXPECT_EQ(kao_module(at::zeros({2, 8, 0, 5}), "kv", {}).numel(), 0);
}

TEST(KaoTest, InputsThatRequireGradTakeTheReference) {
  const at::Tensor x = RandomTensor({1, 4, 3, 3}, at::kDouble).requires_grad_();
  for (const auto& y :
       {kao_kv(x, x, x, 2), kao_qkv(x, x, x, 2), kao_module(x, "kv", {}), kao_module(x, "qkv", {})}) {
    ASSERT_TRUE(y.requires_grad());
    y.sum().backward();
    EXPECT_EQ(x.grad().sizes(), x.sizes());
  }
}

TEST(KaoTest, ErrorsOfTheOperatorsNameTheArgument) {
  const at::Tensor x = at::zeros({2, 8, 4, 5});
  const auto kv = [](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads = 1,
                     const OptionalTensor& coefficients = {}, const OptionalTensor& valid = {}) {
    return ErrorOf([&] { kao_kv(q, k, v, heads, coefficients, valid); });
  };
  EXPECT_THAT(kv(x, x.narrow(0, 0, 1), x),
              HasSubstr("kao_kv: argument 'k' should have shape [2, 8, 4, 5], got [1, 8, 4, 5]"));
  EXPECT_THAT(kv(x[0], x[0], x[0]), HasSubstr("argument 'q' should be [B, C, H, W], got [8, 4, 5]"));
  EXPECT_THAT(kv(x.unsqueeze(2), x, x),
              HasSubstr("argument 'q' should be [B, C, H, W], got [2, 8, 1, 4, 5]"));
  EXPECT_THAT(kv(x, x, at::zeros({2, 6, 4, 4})), HasSubstr("argument 'v' should have shape [2, 6, 4, 5]"));
  EXPECT_THAT(
      kv(x, x, at::zeros({2, 6, 4, 5}), 4),
      HasSubstr("argument 'v' should have a positive multiple of heads = 4 channels, got [2, 6, 4, 5]"));
  EXPECT_THAT(kv(x, x, x.to(at::kDouble)), HasSubstr("argument 'v' should be float32, got float64"));
  EXPECT_THAT(kv(x, x, x, 2, at::zeros({3})),
              HasSubstr("argument 'coefficient_scale' should have shape [2], got [3]"));
  EXPECT_THAT(kv(x, x, x, 0), HasSubstr("argument 'heads' should be at least 1, got 0"));
  EXPECT_THAT(kv(x, x, x, 1, {}, at::tensor({4, 5, 4, 6}, at::kLong).view({2, 2})),
              HasSubstr("argument 'valid' at [1, 1] should lie in 0..5, got 6"));
  const at::Tensor half = x.to(at::kHalf);
  EXPECT_THAT(kv(half, half, half),
              HasSubstr("argument 'q' should be float32 or bfloat16 or float64, got float16"));
  EXPECT_THAT(kv(x, x, x, 1, at::full({1}, std::numeric_limits<double>::infinity())),
              HasSubstr("argument 'coefficient_scale' should be finite"));
  EXPECT_THAT(ErrorOf([&] { kao_qkv(x, x, x.to(at::kMeta)); }),
              HasSubstr("kao_qkv: argument 'v' should be on cpu"));
}

TEST(KaoTest, ErrorsOfTheModuleNameTheArgument) {
  const at::Tensor x = at::zeros({2, 8, 4, 5});
  const auto module = [&](const Weights& w, int64_t heads = 1, bool residual = true,
                          std::string_view kind = "kv") {
    return ErrorOf([&] { Module(x, kind, w, heads, residual); });
  };
  EXPECT_THAT(module({}, 1, true, "vk"),
              HasSubstr("kao_module: argument 'kind' should be 'kv' or 'qkv', got 'vk'"));
  EXPECT_THAT(module({.query = at::zeros({6, 8})}),
              HasSubstr("argument 'query_weight' should have shape [8, 8], got [6, 8]"));
  EXPECT_THAT(module({.query = at::zeros({6, 8}), .key = at::zeros({4, 8})}),
              HasSubstr("argument 'key_weight' should have shape [6, 8], got [4, 8]"));
  EXPECT_THAT(
      module({.query = at::zeros({6, 8}), .key = at::zeros({6, 8})}, 4),
      HasSubstr("argument 'query_weight' should have a positive multiple of heads = 4 rows, got [6, 8]"));
  EXPECT_THAT(module({.query = at::zeros({8}), .key = at::zeros({8, 8})}),
              HasSubstr("argument 'query_weight' should be a matrix, got shape [8]"));
  EXPECT_THAT(
      module({}, 3),
      HasSubstr("argument 'x' should have a positive multiple of heads = 3 channels without 'query_weight', "
                "got [2, 8, 4, 5]"));
  EXPECT_THAT(
      module({.value = at::zeros({6, 8})}),
      HasSubstr("argument 'residual' should be false if 'value_weight' gives 6 channels for an input of 8, "
                "got true"));
  EXPECT_THAT(module({.value = at::zeros({6, 7})}, 1, false),
              HasSubstr("argument 'value_weight' should have shape [6, 8], got [6, 7]"));
  EXPECT_THAT(module({.query_bias = at::zeros({7})}),
              HasSubstr("argument 'query_bias' should have shape [8], got [7]"));
  EXPECT_THAT(module({.scale = at::zeros({8}, at::kDouble)}),
              HasSubstr("argument 'scale' should be float32"));
  EXPECT_THAT(module({.shift = at::full({8}, std::numeric_limits<double>::quiet_NaN())}),
              HasSubstr("argument 'shift' should be finite"));
}

}  // namespace
}  // namespace saccade::kernels
