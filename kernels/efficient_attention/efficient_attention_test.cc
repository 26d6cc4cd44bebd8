// Compares the operator on tensors with the differentiable reference in float64, and checks its properties.
#include "kernels/efficient_attention/efficient_attention.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>
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

#include "kernels/common/testing/tensors.h"
#include "kernels/efficient_attention/efficient_attention_impl.h"

namespace saccade::kernels {
namespace {

using testing::HasSubstr;

struct Weights {
  Weights(int64_t channels, int64_t keys, int64_t values, int64_t outputs, bool biases, at::ScalarType dtype)
      : key(Matrix(keys, channels, dtype)),
        query(Matrix(keys, channels, dtype)),
        value(Matrix(values, channels, dtype)) {
    if (outputs > 0) out = Matrix(outputs, values, dtype);
    if (!biases) return;
    key_bias = RandomTensor({keys}, dtype);
    query_bias = RandomTensor({keys}, dtype);
    value_bias = RandomTensor({values}, dtype);
    if (outputs > 0) out_bias = RandomTensor({outputs}, dtype);
  }
  static at::Tensor Matrix(int64_t rows, int64_t columns, at::ScalarType dtype) {
    return (RandomTensor({rows, columns}, at::kDouble) / std::sqrt(static_cast<double>(columns))).to(dtype);
  }
  Weights To(at::ScalarType dtype) const {
    Weights other = *this;
    for (at::Tensor* t : {&other.key, &other.query, &other.value}) *t = t->to(dtype);
    for (OptionalTensor* t :
         {&other.key_bias, &other.query_bias, &other.value_bias, &other.out, &other.out_bias}) {
      if (t->has_value()) *t = (*t)->to(dtype);
    }
    return other;
  }
  EaWeights Arguments() const { return {key, query, value, key_bias, query_bias, value_bias, out, out_bias}; }

  at::Tensor key, query, value;
  OptionalTensor key_bias, query_bias, value_bias, out, out_bias;
};

at::Tensor Module(const at::Tensor& x, const Weights& w, int64_t heads, const std::string& normalization,
                  bool residual, const OptionalTensor& valid = {}) {
  return efficient_attention_module(x, w.Arguments(), heads, normalization, residual, valid);
}

// The formulas written directly in ATen operators, every step in the maps' own type.
at::Tensor Composed(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                    const std::string& normalization) {
  const auto split = [&](const at::Tensor& x) { return x.flatten(2).unflatten(1, {heads, -1}); };
  std::vector<int64_t> shape = q.sizes().vec();
  shape[1] = v.size(1);
  const double positions = static_cast<double>(q[0][0].numel());
  const bool softmax = normalization == "softmax";
  const at::Tensor queries = softmax ? at::softmax(split(q), 2) : split(q) / std::sqrt(positions);
  const at::Tensor keys = softmax ? at::softmax(split(k), 3) : split(k) / std::sqrt(positions);
  return at::matmul(at::matmul(split(v), keys.transpose(2, 3)), queries).flatten(1, 2).view(shape);
}

at::Tensor ComposedModule(const at::Tensor& x, const Weights& w, int64_t heads,
                          const std::string& normalization, bool residual) {
  const auto project = [](const at::Tensor& map, const at::Tensor& matrix, const OptionalTensor& bias) {
    at::Tensor y = at::matmul(matrix, map.flatten(2));
    if (bias.has_value()) y = y + bias->unsqueeze(1);
    std::vector<int64_t> shape = map.sizes().vec();
    shape[1] = matrix.size(0);
    return y.view(shape);
  };
  at::Tensor out = Composed(project(x, w.query, w.query_bias), project(x, w.key, w.key_bias),
                            project(x, w.value, w.value_bias), heads, normalization);
  if (w.out.has_value()) out = project(out, *w.out, w.out_bias);
  return residual ? out + x : out;
}

struct Case {
  explicit Case(unsigned seed) {
    std::mt19937 random(seed);
    const auto pick = [&](int from, int to) {
      return std::uniform_int_distribution<int64_t>(from, to)(random);
    };
    const int64_t dims = pick(1, 3);
    heads = pick(1, 3);
    shape = {pick(1, 3), pick(1, 70)};
    for (int64_t d = 0; d < dims; ++d) shape.push_back(pick(1, dims == 1 ? 900 : dims == 2 ? 40 : 11));
    keys = heads * pick(1, 30);
    values = heads * pick(1, 30);
    memory = static_cast<Memory>(pick(0, 5));
    normalization = pick(0, 2) == 0 ? "scaling" : "softmax";
    biases = pick(0, 1) != 0;
    residual = pick(0, 1) != 0;
    // No output projection, or one to x's channels, or one to another number of channels.
    const int64_t kind = pick(0, 2);
    out = kind == 0 ? 0 : residual ? shape[1] : pick(1, 300);
    if (kind == 0 && residual) {
      values = heads * pick(1, 20);
      shape[1] = values;
    }
  }
  std::string Name() const {
    std::ostringstream text;
    text << at::IntArrayRef(shape) << " heads=" << heads << " keys=" << keys << " values=" << values
         << " out=" << out << " " << normalization << " memory=" << static_cast<int>(memory)
         << " biases=" << biases << " residual=" << residual;
    return text.str();
  }
  std::vector<int64_t> shape;
  int64_t heads = 1, keys = 1, values = 1, out = 0;
  Memory memory = Memory::kContiguous;
  std::string normalization;
  bool biases = false, residual = true;
};

class EaTypes : public testing::TestWithParam<at::ScalarType> {};

TEST_P(EaTypes, ModuleMatchesTheReference) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const Case c(seed);
    SCOPED_TRACE(c.Name());
    const Weights weights(c.shape[1], c.keys, c.values, c.out, c.biases, GetParam());
    const at::Tensor x = RandomMap(c.shape, GetParam(), c.memory);
    const Weights exact = weights.To(at::kDouble);
    const at::Tensor expected =
        EaModuleReference(x.to(at::kDouble), exact.Arguments(), c.heads, c.normalization, c.residual, {});
    const at::Tensor composed = ComposedModule(x, weights, c.heads, c.normalization, c.residual);
    const at::Tensor got = Module(x, weights, c.heads, c.normalization, c.residual);
    EXPECT_EQ(got.scalar_type(), GetParam());
    EXPECT_LE(RelativeError(got, expected), AllowedError(GetParam(), RelativeError(composed, expected)));
  }
}

TEST_P(EaTypes, OperatorMatchesTheReference) {
  for (unsigned seed = 100; seed < 140; ++seed) {
    const Case c(seed);
    SCOPED_TRACE(c.Name());
    std::vector<int64_t> narrow = c.shape, wide = c.shape;
    narrow[1] = c.keys;
    wide[1] = c.values;
    const at::Tensor q = RandomMap(narrow, GetParam(), c.memory);
    const at::Tensor k = RandomMap(narrow, GetParam(), Memory::kChannelsLast);
    const at::Tensor v = RandomMap(wide, GetParam(), Memory::kSlicedChannels);
    const at::Tensor expected =
        EaReference(q.to(at::kDouble), k.to(at::kDouble), v.to(at::kDouble), c.heads, c.normalization, {});
    const at::Tensor composed = Composed(q, k, v, c.heads, c.normalization);
    const at::Tensor got = efficient_attention(q, k, v, c.heads, c.normalization);
    EXPECT_LE(RelativeError(got, expected), AllowedError(GetParam(), RelativeError(composed, expected)));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, EaTypes, testing::Values(at::kFloat, at::kBFloat16, at::kDouble));

// Compares the folded form with the operator between explicit 1x1 convolutions, in float64.
TEST(EaTest, TheModuleIsTheOperatorBetweenProjections) {
  for (const std::string normalization : {"softmax", "scaling"}) {
    const Weights w(12, 6, 9, 12, true, at::kDouble);
    const at::Tensor x = RandomTensor({2, 12, 5, 9}, at::kDouble);
    const auto project = [&](const at::Tensor& map, const at::Tensor& matrix, const at::Tensor& bias) {
      return (at::matmul(matrix, map.flatten(2)) + bias.unsqueeze(1)).view({2, -1, 5, 9});
    };
    const at::Tensor attended =
        efficient_attention(project(x, w.query, *w.query_bias), project(x, w.key, *w.key_bias),
                            project(x, w.value, *w.value_bias), 3, normalization);
    const at::Tensor expected = project(attended, *w.out, *w.out_bias) + x;
    EXPECT_LE(RelativeError(Module(x, w, 3, normalization, true), expected), 1e-13);
  }
}

// Checks the definition without the reference: scaling is exactly (1/N) Q K^T V.
TEST(EaTest, ScalingIsTheMeanOfSimilaritiesTimesValues) {
  const at::Tensor q = RandomTensor({1, 4, 7}, at::kDouble);
  const at::Tensor k = RandomTensor({1, 4, 7}, at::kDouble);
  const at::Tensor v = RandomTensor({1, 3, 7}, at::kDouble);
  const at::Tensor similarity = at::matmul(q[0].transpose(0, 1), k[0]);
  const at::Tensor expected = at::matmul(v[0], similarity.transpose(0, 1)).div(7).unsqueeze(0);
  EXPECT_LE(RelativeError(efficient_attention(q, k, v, 1, "scaling"), expected), 1e-14);
}

TEST(EaTest, TheKeysBiasCancelsInTheSoftmax) {
  const Weights with(8, 4, 8, 8, true, at::kFloat);
  Weights without = with;
  without.key_bias.reset();
  const at::Tensor x = RandomTensor({2, 8, 6, 5}, at::kFloat);
  EXPECT_TRUE(SameBits(Module(x, with, 2, "softmax", true), Module(x, without, 2, "softmax", true)));
  EXPECT_FALSE(SameBits(Module(x, with, 2, "scaling", true), Module(x, without, 2, "scaling", true)));
}

class EaSizes : public testing::TestWithParam<std::vector<int64_t>> {};

TEST_P(EaSizes, ASampleDoesNotDependOnItsBatchOrTheThreads) {
  const auto& shape = GetParam();
  const Weights weights(shape[1], 24, 16, shape[1], true, at::kFloat);
  const at::Tensor x = RandomTensor(shape, at::kFloat);
  const auto run = [&](const at::Tensor& input) { return Module(input, weights, 2, "softmax", true); };
  const int threads = at::get_num_threads();
  const at::Tensor whole = run(x);
  for (const int count : {1, 2, 3}) {
    at::set_num_threads(count);
    EXPECT_TRUE(SameBits(run(x), whole)) << count << " threads";
    for (int64_t b = 0; b < shape[0]; ++b) {
      EXPECT_TRUE(SameBits(run(x.narrow(0, b, 1)), whole.narrow(0, b, 1)));
    }
  }
  at::set_num_threads(threads);
}

TEST_P(EaSizes, PaddingLeavesNoTrace) {
  const auto& shape = GetParam();
  const Weights weights(shape[1], 24, 16, shape[1], true, at::kFloat);
  for (const std::string normalization : {"softmax", "scaling"}) {
    for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
      const at::Tensor x = RandomTensor(shape, at::kFloat).contiguous(format);
      at::Tensor padded = at::zeros({shape[0], shape[1], shape[2] + 3, shape[3] + 5}).contiguous(format);
      padded.fill_(std::numeric_limits<double>::quiet_NaN());
      const auto crop = [&](const at::Tensor& t) { return t.narrow(2, 0, shape[2]).narrow(3, 0, shape[3]); };
      crop(padded).copy_(x);
      const at::Tensor valid = at::tensor({shape[2], shape[3]}, at::kLong).expand({shape[0], 2});
      const at::Tensor got = Module(padded, weights, 2, normalization, true, valid);
      EXPECT_TRUE(SameBits(crop(got), Module(x, weights, 2, normalization, true)));
      const auto plain = [&](const at::Tensor& t, const OptionalTensor& extent) {
        return efficient_attention(t, t, t, 1, normalization, extent);
      };
      EXPECT_TRUE(SameBits(crop(plain(padded, valid)), plain(x, {})));
      at::Tensor beside = got.clone();
      crop(beside).zero_();
      EXPECT_EQ(beside.abs().max().item<double>(), 0);
      const at::Tensor reference =
          EaModuleReference(padded, weights.Arguments(), 2, normalization, true, valid);
      EXPECT_LE(RelativeError(got, reference.to(at::kDouble)), 1e-5);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, EaSizes,
                         testing::Values(std::vector<int64_t>{3, 16, 7, 9},
                                         std::vector<int64_t>{2, 40, 28, 28},
                                         std::vector<int64_t>{2, 300, 61, 83}));

TEST(EaTest, AnEmptyBatchGivesAnEmptyResult) {
  const Weights weights(8, 4, 6, 5, true, at::kFloat);
  EXPECT_EQ(Module(at::zeros({0, 8, 4, 5}), weights, 2, "softmax", false).sizes(),
            at::IntArrayRef({0, 5, 4, 5}));
  const at::Tensor none = at::zeros({2, 8, 0, 5});
  EXPECT_EQ(efficient_attention(none, none, none).numel(), 0);
}

TEST(EaTest, ASampleWithoutPositionsIsZero) {
  const Weights weights(8, 4, 6, 8, true, at::kFloat);
  const at::Tensor valid = at::tensor({0, 3, 2, 3}, at::kLong).view({2, 2});
  const at::Tensor got = Module(RandomTensor({2, 8, 4, 5}, at::kFloat), weights, 2, "softmax", true, valid);
  EXPECT_EQ(got[0].abs().max().item<double>(), 0);
  EXPECT_GT(got[1].abs().max().item<double>(), 0);
}

TEST(EaTest, InputsThatRequireGradTakeTheReference) {
  const at::Tensor x = RandomTensor({1, 4, 3, 3}, at::kDouble).requires_grad_();
  const at::Tensor y = efficient_attention(x, x, x, 2);
  ASSERT_TRUE(y.requires_grad());
  y.square().sum().backward();
  EXPECT_EQ(x.grad().sizes(), x.sizes());
}

TEST(EaTest, ErrorsNameTheArgumentWhatWasExpectedAndWhatCame) {
  const at::Tensor x = at::zeros({2, 8, 4, 5});
  const auto plain = [](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                        const std::string& normalization) {
    return ErrorOf([&] { efficient_attention(q, k, v, heads, normalization); });
  };
  EXPECT_THAT(
      plain(x, x.narrow(1, 0, 4), x, 1, "softmax"),
      HasSubstr("efficient_attention: argument 'k' should have shape [2, 8, 4, 5], got [2, 4, 4, 5]"));
  EXPECT_THAT(plain(x, x, x.to(at::kDouble), 1, "softmax"),
              HasSubstr("argument 'v' should be float32, got float64"));
  EXPECT_THAT(plain(x, x, x.narrow(1, 0, 6), 4, "softmax"),
              HasSubstr("argument 'v' should have a positive multiple of heads = 4 channels"));
  EXPECT_THAT(plain(x, x, x, 1, "softmin"),
              HasSubstr("argument 'normalization' should be softmax or scaling, got 'softmin'"));
  const auto module = [&](const std::function<void(Weights&)>& spoil, int64_t heads = 2, bool residual = true,
                          const OptionalTensor& valid = {}) {
    Weights weights(8, 4, 6, 8, true, at::kFloat);
    spoil(weights);
    return ErrorOf([&] { Module(x, weights, heads, "softmax", residual, valid); });
  };
  EXPECT_THAT(
      module([](Weights& w) { w.query = at::zeros({4, 7}); }),
      HasSubstr("efficient_attention_module: argument 'query_weight' should have shape [4, 8], got [4, 7]"));
  EXPECT_THAT(module([](Weights& w) { w.key_bias = at::zeros({5}); }),
              HasSubstr("argument 'key_bias' should have shape [4], got [5]"));
  EXPECT_THAT(module([](Weights& w) { w.out.reset(); }),
              HasSubstr("argument 'out_bias' should be given only together with 'out_weight'"));
  EXPECT_THAT(
      module([](Weights& w) { w.out.reset(), w.out_bias.reset(); }),
      HasSubstr("argument 'residual' requires a result with as many channels as x: expected 8, got 6"));
  EXPECT_THAT(
      module([](Weights&) {}, 3),
      HasSubstr("argument 'key_weight' should give a positive multiple of heads = 3 channels, got 4"));
  EXPECT_THAT(module([](Weights& w) { w.value = w.value.to(at::kDouble); }),
              HasSubstr("argument 'value_weight' should be float32, got float64"));
  EXPECT_THAT(module([](Weights& w) { w.value[1][2] = std::numeric_limits<double>::quiet_NaN(); }),
              HasSubstr("argument 'value_weight' should be finite, got infinity or NaN"));
  EXPECT_THAT(module([](Weights& w) { w.out_bias->fill_(std::numeric_limits<double>::infinity()); }),
              HasSubstr("argument 'out_bias' should be finite"));
  EXPECT_THAT(module([](Weights&) {}, 2, true, at::tensor({4, 5, 4, 6}, at::kLong).view({2, 2})),
              HasSubstr("argument 'valid' at [1, 1] should lie in 0..5, got 6"));
}

}  // namespace
}  // namespace saccade::kernels
