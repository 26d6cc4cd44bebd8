// Compares the operator on tensors with the differentiable reference in float64, and checks its properties.
#include "kernels/sao/sao.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
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
#include <vector>

#include "kernels/common/cuda_plugin.h"
#include "kernels/common/testing/tensors.h"
#include "kernels/sao/sao_impl.h"

namespace saccade::kernels {
namespace {

using testing::HasSubstr;

struct Weights {
  Weights(int64_t channels, int64_t positions, at::ScalarType dtype)
      : value(RandomTensor({channels, channels}, dtype) / std::sqrt(static_cast<double>(channels))),
        w(RandomTensor({channels}, dtype)),
        scale(RandomTensor({channels}, dtype) / std::max<int64_t>(positions, 1)),
        shift(RandomTensor({channels}, dtype)) {}
  Weights To(at::ScalarType dtype) const {
    Weights other = *this;
    for (at::Tensor* t : {&other.value, &other.w, &other.scale, &other.shift}) *t = t->to(dtype);
    return other;
  }
  SaoWeights Arguments() const { return {value, w, scale, shift}; }

  at::Tensor value, w, scale, shift;
};

// The module written directly in ATen operators, every step in x's own type.
at::Tensor ComposedModule(const at::Tensor& x, const Weights& weights, int64_t heads, bool global_term,
                          bool residual) {
  const at::Tensor flat = x.flatten(2);
  const at::Tensor q = flat.unflatten(1, {heads, -1});
  const at::Tensor v = at::matmul(weights.value, flat).unflatten(1, {heads, -1});
  const at::Tensor scores = at::matmul(weights.w.view({heads, 1, -1}), q);
  at::Tensor out = v.sum(-1, true) * scores;
  if (global_term) out = out + at::matmul(v, scores.transpose(-2, -1));
  out = out.flatten(1, 2) * weights.scale.unsqueeze(1) + weights.shift.unsqueeze(1);
  if (residual) out = out + flat;
  return out.view(x.sizes());
}

at::Tensor ComposedSao(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& w,
                       int64_t heads, bool global_term) {
  const auto split = [&](const at::Tensor& x) { return x.flatten(2).unflatten(1, {heads, -1}); };
  const at::Tensor weights = w.view({heads, 1, -1});
  at::Tensor out = split(v).mean(-1, true) * at::matmul(weights, split(q));
  if (global_term) {
    const at::Tensor scores = at::matmul(weights, split(k)).transpose(-2, -1);
    out = out + at::matmul(split(v), scores) / split(v).size(-1);
  }
  return out.flatten(1, 2).view(q.sizes());
}

struct Case {
  explicit Case(unsigned seed) {
    std::mt19937 random(seed);
    const auto pick = [&](int from, int to) {
      return std::uniform_int_distribution<int64_t>(from, to)(random);
    };
    const int64_t dims = pick(1, 3);
    heads = pick(1, 4);
    shape = {pick(1, 3), heads * pick(1, 40)};
    for (int64_t d = 0; d < dims; ++d) shape.push_back(pick(1, dims == 1 ? 900 : dims == 2 ? 40 : 11));
    for (size_t d = 2; d < shape.size(); ++d) positions *= shape[d];
    memory = static_cast<Memory>(pick(0, 5));
    global_term = pick(0, 3) != 0;
    residual = pick(0, 1) != 0;
  }
  std::string Name() const {
    std::ostringstream text;
    text << at::IntArrayRef(shape) << " heads=" << heads << " memory=" << static_cast<int>(memory)
         << " global=" << global_term << " residual=" << residual;
    return text.str();
  }
  std::vector<int64_t> shape;
  int64_t heads = 1;
  int64_t positions = 1;
  Memory memory = Memory::kContiguous;
  bool global_term = true;
  bool residual = true;
};

class SaoTypes : public testing::TestWithParam<at::ScalarType> {};

TEST_P(SaoTypes, ModuleMatchesTheReference) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    const Case c(seed);
    SCOPED_TRACE(c.Name());
    const Weights weights(c.shape[1], c.positions, GetParam());
    const at::Tensor x = RandomMap(c.shape, GetParam(), c.memory);
    const Weights exact = weights.To(at::kDouble);
    const at::Tensor expected =
        SaoModuleReference(x.to(at::kDouble), exact.Arguments(), c.heads, c.global_term, c.residual, {});
    const at::Tensor composed = ComposedModule(x, weights, c.heads, c.global_term, c.residual);
    const at::Tensor got = sao_module(x, weights.Arguments(), c.heads, c.global_term, c.residual);
    EXPECT_EQ(got.scalar_type(), GetParam());
    EXPECT_LE(RelativeError(got, expected), AllowedError(GetParam(), RelativeError(composed, expected)));
  }
}

TEST_P(SaoTypes, OperatorMatchesTheReference) {
  for (unsigned seed = 100; seed < 140; ++seed) {
    const Case c(seed);
    SCOPED_TRACE(c.Name());
    const at::Tensor q = RandomMap(c.shape, GetParam(), c.memory);
    const at::Tensor k = seed % 3 == 0 ? q : RandomMap(c.shape, GetParam(), Memory::kChannelsLast);
    const at::Tensor v = seed % 5 == 0 ? q : RandomMap(c.shape, GetParam(), Memory::kSlicedChannels);
    const at::Tensor w = RandomTensor({c.shape[1]}, GetParam());
    const at::Tensor expected = SaoReference(q.to(at::kDouble), k.to(at::kDouble), v.to(at::kDouble),
                                             w.to(at::kDouble), c.heads, c.global_term, {});
    const at::Tensor composed = ComposedSao(q, k, v, w, c.heads, c.global_term);
    const at::Tensor got = sao(q, k, v, w, c.heads, c.global_term);
    EXPECT_LE(RelativeError(got, expected), AllowedError(GetParam(), RelativeError(composed, expected)));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, SaoTypes, testing::Values(at::kFloat, at::kBFloat16, at::kDouble));

// Checks the operator's definition without the reference: (1/N) sum_j v_j (q_i + k_j)^T w.
TEST(SaoTest, IsTheMeanOfValuesTimesSimilarities) {
  const at::Tensor q = RandomTensor({1, 3, 5}, at::kDouble);
  const at::Tensor k = RandomTensor({1, 3, 5}, at::kDouble);
  const at::Tensor v = RandomTensor({1, 3, 5}, at::kDouble);
  const at::Tensor w = RandomTensor({3}, at::kDouble);
  const at::Tensor pairs = q[0].unsqueeze(2) + k[0].unsqueeze(1);
  const at::Tensor similarity = (pairs * w.view({3, 1, 1})).sum(0);
  const at::Tensor expected = at::matmul(v[0], similarity.transpose(0, 1)).div(5).unsqueeze(0);
  EXPECT_LE(RelativeError(sao(q, k, v, w), expected), 1e-14);
}

TEST(SaoTest, TheModuleIsTheOperatorTimesPositions) {
  const Weights weights(12, 1, at::kDouble);
  const at::Tensor x = RandomTensor({2, 12, 6, 9}, at::kDouble);
  const at::Tensor v = at::matmul(weights.value, x.flatten(2)).view(x.sizes());
  const auto per_channel = [](const at::Tensor& t) { return t.view({-1, 1, 1}); };
  const at::Tensor expected =
      sao(x, x, v, weights.w, 3) * 54 * per_channel(weights.scale) + per_channel(weights.shift) + x;
  const at::Tensor got = sao_module(x, weights.Arguments(), 3);
  EXPECT_LE(RelativeError(got, expected), 1e-13);
  // Stored as a 1x1 convolution.
  SaoWeights convolution = weights.Arguments();
  convolution.value_weight = weights.value.view({12, 12, 1, 1});
  EXPECT_TRUE(SameBits(got, sao_module(x, convolution, 3)));
}

// Such a map has fewer elements than positions.
TEST(SaoTest, PositionsMayShareAnElement) {
  const at::Tensor v = RandomTensor({2, 12, 6, 9}, at::kFloat);
  const at::Tensor w = RandomTensor({12}, at::kFloat);
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{2, 12, 1, 1}, {2, 12, 6, 1}, {2, 12, 1, 9}, {1, 12, 1, 1}, {1, 1, 1, 1}}) {
    const at::Tensor shared = RandomTensor(shape, at::kFloat).expand(v.sizes());
    for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
      const at::Tensor copied = shared.contiguous(format);
      const at::Tensor values = v.contiguous(format);
      EXPECT_LE(RelativeError(sao(shared, values, values, w, 3), sao(copied, values, values, w, 3)), 1e-6);
      EXPECT_LE(RelativeError(sao(values, shared, values, w, 3), sao(values, copied, values, w, 3)), 1e-6);
      EXPECT_LE(RelativeError(sao(values, values, shared, w, 3), sao(values, values, copied, w, 3)), 1e-6);
    }
  }
}

TEST(SaoTest, NoWeightsMeansOnes) {
  const at::Tensor x = RandomTensor({2, 8, 5, 5}, at::kFloat);
  EXPECT_TRUE(SameBits(sao(x, x, x, {}, 2), sao(x, x, x, at::zeros({8}).add(1), 2)));
}

TEST(SaoTest, NarrowInputsTakeFloat32Weights) {
  const Weights weights(16, 48, at::kBFloat16);
  const Weights wide = weights.To(at::kFloat);
  const at::Tensor x = RandomTensor({1, 16, 6, 8}, at::kBFloat16);
  EXPECT_TRUE(SameBits(sao_module(x, weights.Arguments()), sao_module(x, wide.Arguments())));
}

class SaoSizes : public testing::TestWithParam<std::vector<int64_t>> {};

TEST_P(SaoSizes, ASampleDoesNotDependOnItsBatchOrTheThreads) {
  const auto& shape = GetParam();
  const Weights weights(shape[1], shape[2] * shape[3], at::kFloat);
  const at::Tensor x = RandomTensor(shape, at::kFloat);
  const auto run = [&](const at::Tensor& input) { return sao_module(input, weights.Arguments()); };
  const int threads = at::get_num_threads();
  const at::Tensor whole = run(x);
  for (const int count : {1, 2, 3}) {
    at::set_num_threads(count);
    EXPECT_TRUE(SameBits(run(x), whole)) << count << " threads";
    for (int64_t b = 0; b < shape[0]; ++b)
      EXPECT_TRUE(SameBits(run(x.narrow(0, b, 1)), whole.narrow(0, b, 1)));
  }
  at::set_num_threads(threads);
}

TEST_P(SaoSizes, PaddingLeavesNoTrace) {
  const auto& shape = GetParam();
  const Weights weights(shape[1], shape[2] * shape[3], at::kFloat);
  for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    const at::Tensor x = RandomTensor(shape, at::kFloat).contiguous(format);
    // The padding must not be read.
    at::Tensor padded = at::zeros({shape[0], shape[1], shape[2] + 3, shape[3] + 5}).contiguous(format);
    padded.fill_(std::numeric_limits<double>::quiet_NaN());
    const auto crop = [&](const at::Tensor& t) { return t.narrow(2, 0, shape[2]).narrow(3, 0, shape[3]); };
    crop(padded).copy_(x);
    const at::Tensor valid = at::tensor({shape[2], shape[3]}, at::kLong).expand({shape[0], 2});
    const auto run = [&](const at::Tensor& input, const OptionalTensor& extent) {
      return sao_module(input, weights.Arguments(), 4, true, true, extent);
    };
    const at::Tensor got = run(padded, valid);
    EXPECT_TRUE(SameBits(crop(got), run(x, {})));
    EXPECT_TRUE(
        SameBits(crop(sao(padded, padded, padded, weights.w, 4, true, valid)), sao(x, x, x, weights.w, 4)));
    at::Tensor beside = got.clone();
    crop(beside).zero_();
    EXPECT_EQ(beside.abs().max().item<double>(), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, SaoSizes,
                         testing::Values(std::vector<int64_t>{3, 16, 7, 9},
                                         std::vector<int64_t>{2, 128, 28, 28},
                                         std::vector<int64_t>{2, 64, 61, 83}));

TEST(SaoTest, AnEmptyBatchGivesAnEmptyResult) {
  const at::Tensor none = at::zeros({0, 8, 4, 5});
  const Weights weights(8, 20, at::kFloat);
  EXPECT_EQ(sao(none, none, none).sizes(), none.sizes());
  EXPECT_EQ(sao_module(none, {weights.value, {}, weights.scale, weights.shift}).sizes(), none.sizes());
  EXPECT_EQ(sao(at::zeros({2, 8, 0, 5}), at::zeros({2, 8, 0, 5}), at::zeros({2, 8, 0, 5})).numel(), 0);
}

TEST(SaoTest, InputsThatRequireGradTakeTheReference) {
  const at::Tensor x = RandomTensor({1, 4, 3, 3}, at::kDouble).requires_grad_();
  const at::Tensor y = sao(x, x, x, {}, 2);
  ASSERT_TRUE(y.requires_grad());
  y.sum().backward();
  EXPECT_EQ(x.grad().sizes(), x.sizes());
}

TEST(SaoTest, ErrorsNameTheArgumentWhatWasExpectedAndWhatCame) {
  const at::Tensor x = at::zeros({2, 8, 4, 5});
  const Weights weights(8, 20, at::kFloat);
  const auto module = [&](const at::Tensor& value, const at::Tensor& scale, const OptionalTensor& valid) {
    return ErrorOf([&] { sao_module(x, {value, weights.w, scale, weights.shift}, 4, true, true, valid); });
  };
  EXPECT_THAT(ErrorOf([&] { sao(x, x.narrow(0, 0, 1), x); }),
              HasSubstr("sao: argument 'k' should have shape [2, 8, 4, 5], got [1, 8, 4, 5]"));
  EXPECT_THAT(ErrorOf([&] { sao(x, x, x.to(at::kDouble)); }),
              HasSubstr("argument 'v' should be float32, got float64"));
  EXPECT_THAT(ErrorOf([&] { sao(x, x, x, at::zeros({7})); }),
              HasSubstr("argument 'w' should have shape [8], got [7]"));
  EXPECT_THAT(
      ErrorOf([&] { sao(x, x, x, {}, 3); }),
      HasSubstr("argument 'q' should have a positive multiple of heads = 3 channels, got [2, 8, 4, 5]"));
  EXPECT_THAT(ErrorOf([&] { sao(x, x, x, {}, 0); }),
              HasSubstr("argument 'heads' should be at least 1, got 0"));
  EXPECT_THAT(ErrorOf([&] { sao(x[0][0], x[0][0], x[0][0]); }),
              HasSubstr("1 to 3 spatial dimensions, got [4, 5]"));
  EXPECT_THAT(ErrorOf([&] { sao(x.to(at::kInt), x.to(at::kInt), x.to(at::kInt)); }),
              HasSubstr("argument 'q' should be float32"));
  EXPECT_THAT(ErrorOf([&] { sao(x.to(at::kHalf), x.to(at::kHalf), x.to(at::kHalf)); }),
              HasSubstr("argument 'q' should be float32 or bfloat16 or float64, got float16"));
  EXPECT_THAT(ErrorOf([&] { sao(x, x.to(at::kMeta), x); }), HasSubstr("argument 'k' should be on cpu"));
  EXPECT_THAT(module(at::zeros({8, 7}), weights.scale, {}),
              HasSubstr("argument 'value_weight' should have shape [8, 8], got [8, 7]"));
  EXPECT_THAT(module(weights.value, at::zeros({8, 1}), {}),
              HasSubstr("argument 'scale' should have shape [8]"));
  EXPECT_THAT(module(weights.value, weights.scale, at::zeros({2, 2})),
              HasSubstr("argument 'valid' should be int64"));
  EXPECT_THAT(module(weights.value, weights.scale, at::zeros({2, 3}, at::kLong)),
              HasSubstr("argument 'valid' should have shape [2, 2], got [2, 3]"));
  EXPECT_THAT(module(weights.value, weights.scale, at::tensor({4, 5, 4, 6}, at::kLong).view({2, 2})),
              HasSubstr("argument 'valid' at [1, 1] should lie in 0..5, got 6"));
}

TEST(SaoTest, WeightsThatAreNotFiniteAreErrors) {
  const at::Tensor x = at::zeros({2, 8, 4, 5});
  const Weights weights(8, 20, at::kFloat);
  const at::Tensor infinite = at::full({8, 8}, std::numeric_limits<double>::infinity());
  const auto module = [&](const auto& change) {
    SaoWeights changed = weights.Arguments();
    change(changed);
    return ErrorOf([&] { sao_module(x, changed); });
  };
  EXPECT_THAT(module([&](SaoWeights& t) { t.w = infinite[0]; }),
              HasSubstr("sao_module: argument 'w' should be finite"));
  EXPECT_THAT(module([&](SaoWeights& t) { t.value_weight = infinite; }),
              HasSubstr("argument 'value_weight' should be finite"));
  EXPECT_THAT(module([&](SaoWeights& t) { t.query_weight = infinite; }),
              HasSubstr("argument 'query_weight' should be finite"));
  EXPECT_THAT(module([&](SaoWeights& t) { t.key_weight = infinite; }),
              HasSubstr("argument 'key_weight' should be finite"));
  // Finite weights are no error even if their product with w, which the kernel uses, overflows.
  EXPECT_EQ(module([&](SaoWeights& t) {
              t.w = at::full({8}, 1e30);
              t.query_weight = t.key_weight = at::full({8, 8}, 1e30);
            }),
            "");
}

TEST(CudaPluginTest, SaysWhyItIsNotLoaded) {
  const CudaPlugin& plugin = LoadCudaPlugin();
  EXPECT_NE(plugin.loaded, plugin.devices == 0);
  EXPECT_EQ(plugin.loaded, plugin.reason.empty()) << plugin.reason;
}

}  // namespace
}  // namespace saccade::kernels
