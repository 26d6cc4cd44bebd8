// Compares the operator on tensors with the differentiable reference in float64, and checks its properties.
#include "kernels/expatt/expatt.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/scalar_tensor.h>
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

#include "kernels/common/check.h"
#include "kernels/common/testing/tensors.h"
#include "kernels/expatt/expatt_impl.h"

namespace saccade::kernels {
namespace {

using testing::HasSubstr;

constexpr const char* kKinds[] = {
    "constant", "linear", "cosine", "gaussian", "exponential_euclidean", "exponential_manhattan"};

at::Tensor Sigma(double value, at::ScalarType dtype = at::kFloat) {
  return at::scalar_tensor(value, at::TensorOptions(dtype));
}

struct Case {
  explicit Case(unsigned seed) {
    std::mt19937 random(seed);
    const auto pick = [&](int from, int to) {
      return std::uniform_int_distribution<int64_t>(from, to)(random);
    };
    kind = kKinds[seed % std::size(kKinds)];
    shape = {pick(1, 3), pick(1, 30), pick(1, 23), pick(1, 23)};
    memory = static_cast<Memory>(pick(0, 5));
    sigma = std::exp2(static_cast<double>(pick(-4, 1)));
    value_channels = pick(1, 30);
    out_channels = pick(0, 2) == 0 ? 0 : pick(1, 40);
    biases = pick(0, 3);
  }
  std::string Name() const {
    std::ostringstream text;
    text << kind << " " << at::IntArrayRef(shape) << " memory=" << static_cast<int>(memory)
         << " sigma=" << sigma << " dv=" << value_channels << " Cout=" << out_channels
         << " biases=" << biases;
    return text.str();
  }
  // Returns the module's weights, with the case's sizes.
  ExpattWeights Weights(at::ScalarType dtype) const {
    const auto matrix = [&](int64_t rows, int64_t columns) {
      return RandomTensor({rows, columns}, dtype) / std::sqrt(static_cast<double>(columns));
    };
    ExpattWeights weights{matrix(value_channels, shape[1]), {}, {}, {}};
    if ((biases & 1) != 0) weights.value_bias = RandomTensor({value_channels}, dtype);
    if (out_channels > 0) weights.out = matrix(out_channels, value_channels);
    if ((biases & 2) != 0) {
      weights.out_bias = RandomTensor({out_channels > 0 ? out_channels : value_channels}, dtype);
    }
    return weights;
  }
  const char* kind;
  std::vector<int64_t> shape;
  Memory memory;
  double sigma;
  int64_t value_channels, out_channels, biases;
};

ExpattWeights To(const ExpattWeights& weights, at::ScalarType dtype) {
  const auto convert = [&](const OptionalTensor& t) {
    return t.has_value() ? OptionalTensor(t->to(dtype)) : std::nullopt;
  };
  return {weights.value.to(dtype), convert(weights.value_bias), convert(weights.out),
          convert(weights.out_bias)};
}

// The usual serving code in ATen operators: the map in v's type, built once and kept, and one product.
at::Tensor Composed(const at::Tensor& v, const std::string& kind, double sigma) {
  const auto height = static_cast<double>(v.size(2));
  const auto width = static_cast<double>(v.size(3));
  const auto distances = [](int64_t size) {
    const at::Tensor index = at::arange(size, at::TensorOptions(at::kDouble));
    return (index.unsqueeze(1) - index).abs();
  };
  const at::Tensor dy = distances(v.size(2)).view({v.size(2), 1, v.size(2), 1});
  const at::Tensor dx = distances(v.size(3)).view({1, v.size(3), 1, v.size(3)});
  const at::Tensor scaled = (dy / height).square() + (dx / width).square();
  const at::Tensor part = (dy.square() + dx.square()).sqrt() / std::hypot(height, width);
  at::Tensor g = at::ones_like(part);
  if (kind == "linear") g = 1 - part;
  if (kind == "cosine") g = (part * M_PI).cos().add(1).div(2);
  if (kind == "gaussian") g = (scaled / (-2 * sigma * sigma)).exp();
  if (kind == "exponential_euclidean") g = (scaled.sqrt() / -sigma).exp();
  if (kind == "exponential_manhattan") g = ((dy / height + dx / width) / -sigma).exp();
  const int64_t positions = v.size(2) * v.size(3);
  const at::Tensor map = (g + 1).reshape({positions, positions});
  const at::Tensor normalised = (map / map.sum(1, true)).to(v.scalar_type());
  return at::matmul(v.flatten(2), normalised.t()).view(v.sizes());
}

at::Tensor ComposedModule(const at::Tensor& x, const ExpattWeights& weights, const char* kind, double sigma) {
  const auto mix = [](const at::Tensor& weight, const OptionalTensor& bias, const at::Tensor& t) {
    at::Tensor y = at::matmul(weight, t.flatten(2));
    if (bias.has_value()) y = y + bias->unsqueeze(1);
    return y.view({t.size(0), -1, t.size(2), t.size(3)});
  };
  const at::Tensor p = Composed(mix(weights.value, weights.value_bias, x), kind, sigma);
  if (weights.out.has_value()) return mix(*weights.out, weights.out_bias, p);
  return weights.out_bias.has_value() ? p + weights.out_bias->view({-1, 1, 1}) : p;
}

at::Tensor Module(const at::Tensor& x, const ExpattWeights& weights, const char* kind, double sigma,
                  const OptionalTensor& valid = {}) {
  return expatt_module(x, weights.value, weights.value_bias, weights.out, weights.out_bias, kind, sigma,
                       valid);
}

class ExpattTypes : public testing::TestWithParam<at::ScalarType> {};

TEST_P(ExpattTypes, OperatorMatchesTheReference) {
  for (unsigned seed = 0; seed < 24; ++seed) {
    const Case c(seed);
    SCOPED_TRACE(c.Name());
    const at::Tensor v = RandomMap(c.shape, GetParam(), c.memory);
    const at::Tensor expected = ExpattReference(v.to(at::kDouble), c.kind, Sigma(c.sigma, at::kDouble), {});
    const at::Tensor composed = Composed(v, c.kind, c.sigma);
    const at::Tensor got = expatt(v, c.kind, Sigma(c.sigma));
    EXPECT_EQ(got.scalar_type(), GetParam());
    EXPECT_LE(RelativeError(got, expected), AllowedError(GetParam(), RelativeError(composed, expected)));
  }
}

TEST_P(ExpattTypes, ModuleMatchesTheReference) {
  for (unsigned seed = 100; seed < 124; ++seed) {
    const Case c(seed);
    SCOPED_TRACE(c.Name());
    const at::Tensor x = RandomMap(c.shape, GetParam(), c.memory);
    const ExpattWeights weights = c.Weights(GetParam());
    const at::Tensor expected =
        ExpattModuleReference(x.to(at::kDouble), To(weights, at::kDouble), c.kind, c.sigma, {});
    const at::Tensor composed = ComposedModule(x, weights, c.kind, c.sigma);
    EXPECT_LE(RelativeError(Module(x, weights, c.kind, c.sigma), expected),
              AllowedError(GetParam(), RelativeError(composed, expected)));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ExpattTypes, testing::Values(at::kFloat, at::kBFloat16, at::kDouble));

// The paper's equations for a line of three pixels, written out.
TEST(ExpattTest, IsTheWeightedMeanOfThePaper) {
  const at::Tensor v = at::tensor({1.0, 2.0, 4.0}, at::kDouble).view({1, 1, 1, 3});
  const double near = std::exp(-1.0 / 9 / (2 * 0.25));
  const double far = std::exp(-4.0 / 9 / (2 * 0.25));
  const double first = (2 * 1 + (near + 1) * 2 + (far + 1) * 4) / (2 + near + 1 + far + 1);
  const double middle = ((near + 1) * 1 + 2 * 2 + (near + 1) * 4) / (2 + 2 * (near + 1));
  const double last = ((far + 1) * 1 + (near + 1) * 2 + 2 * 4) / (2 + near + 1 + far + 1);
  const at::Tensor expected = at::tensor({first, middle, last}, at::kDouble).view({1, 1, 1, 3});
  EXPECT_LE(RelativeError(expatt(v, "gaussian", Sigma(0.5)), expected), 1e-15);
  EXPECT_LE(RelativeError(ExpattReference(v, "gaussian", Sigma(0.5), {}), expected), 1e-15);
}

TEST(ExpattTest, AConstantPictureStaysAsItIs) {
  const at::Tensor v = at::zeros({1, 3, 33, 21}).add(7);
  for (const char* kind : kKinds) {
    EXPECT_LE((expatt(v, kind, Sigma(0.3)) - 7).abs().max().item<double>(), 1e-5) << kind;
  }
}

TEST(ExpattTest, TheModuleIsTheOperatorBetweenTwoConvolutions) {
  for (unsigned seed = 200; seed < 224; ++seed) {
    const Case c(seed);
    SCOPED_TRACE(c.Name());
    const at::Tensor x = RandomMap(c.shape, at::kDouble, c.memory);
    ExpattWeights weights = c.Weights(at::kDouble);
    const auto mix = [](const at::Tensor& weight, const at::Tensor& t) {
      return at::matmul(weight, t.flatten(2)).view({t.size(0), -1, t.size(2), t.size(3)});
    };
    at::Tensor expected = mix(weights.value, x);
    if (weights.value_bias.has_value()) expected = expected + weights.value_bias->view({-1, 1, 1});
    expected = expatt(expected, c.kind, Sigma(c.sigma, at::kDouble));
    if (weights.out.has_value()) expected = mix(*weights.out, expected);
    if (weights.out_bias.has_value()) expected = expected + weights.out_bias->view({-1, 1, 1});
    const at::Tensor got = Module(x, weights, c.kind, c.sigma);
    EXPECT_LE(RelativeError(got, expected), 1e-12);
    // Stored as a 1x1 convolution.
    weights.value = weights.value.unsqueeze(-1).unsqueeze(-1);
    EXPECT_TRUE(SameBits(got, Module(x, weights, c.kind, c.sigma)));
  }
}

TEST(ExpattTest, NarrowInputsTakeFloat32Weights) {
  const Case c(103);
  const ExpattWeights weights = c.Weights(at::kBFloat16);
  const at::Tensor x = RandomMap(c.shape, at::kBFloat16, Memory::kContiguous);
  EXPECT_TRUE(
      SameBits(Module(x, weights, "gaussian", 0.75), Module(x, To(weights, at::kFloat), "gaussian", 0.75)));
  EXPECT_TRUE(
      SameBits(expatt(x, "gaussian", Sigma(0.75)), expatt(x, "gaussian", Sigma(0.75, at::kBFloat16))));
}

class ExpattSizes : public testing::TestWithParam<std::tuple<std::vector<int64_t>, const char*>> {
 protected:
  const std::vector<int64_t>& shape() const { return std::get<0>(GetParam()); }
  const char* kind() const { return std::get<1>(GetParam()); }
};

TEST_P(ExpattSizes, ASampleDoesNotDependOnItsBatchOrTheThreads) {
  Case c(7);
  c.shape = shape();
  const ExpattWeights weights = c.Weights(at::kFloat);
  const at::Tensor x = RandomTensor(shape(), at::kFloat);
  const int threads = at::get_num_threads();
  const auto check = [&](const auto& run) {
    const at::Tensor whole = run(x);
    for (const int count : {1, 2, 3, 7}) {
      at::set_num_threads(count);
      EXPECT_TRUE(SameBits(run(x), whole)) << count << " threads";
      for (int64_t b = 0; b < x.size(0); ++b) {
        EXPECT_TRUE(SameBits(run(x.narrow(0, b, 1)), whole.narrow(0, b, 1)));
      }
    }
    at::set_num_threads(threads);
  };
  check([&](const at::Tensor& input) { return expatt(input, kind(), Sigma(0.75)); });
  check([&](const at::Tensor& input) { return Module(input, weights, kind(), 0.75); });
}

TEST_P(ExpattSizes, PaddingLeavesNoTrace) {
  Case c(7);
  c.shape = shape();
  const ExpattWeights weights = c.Weights(at::kFloat);
  for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    const at::Tensor x = RandomTensor(shape(), at::kFloat).contiguous(format);
    // The padding must not be read.
    at::Tensor padded = at::zeros({x.size(0), x.size(1), x.size(2) + 3, x.size(3) + 5}).contiguous(format);
    padded.fill_(std::numeric_limits<double>::quiet_NaN());
    const auto crop = [&](const at::Tensor& t) { return t.narrow(2, 0, x.size(2)).narrow(3, 0, x.size(3)); };
    crop(padded).copy_(x);
    const at::Tensor valid = at::tensor({x.size(2), x.size(3)}, at::kLong).expand({x.size(0), 2});
    const auto check = [&](const auto& run) {
      const at::Tensor got = run(padded, OptionalTensor(valid));
      EXPECT_TRUE(SameBits(crop(got), run(x, OptionalTensor())));
      at::Tensor beside = got.clone();
      crop(beside).zero_();
      EXPECT_EQ(beside.abs().max().item<double>(), 0);
    };
    check([&](const at::Tensor& input, const OptionalTensor& extent) {
      return expatt(input, kind(), Sigma(0.75), extent);
    });
    check([&](const at::Tensor& input, const OptionalTensor& extent) {
      return Module(input, weights, kind(), 0.75, extent);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, ExpattSizes,
                         testing::Combine(testing::Values(std::vector<int64_t>{3, 11, 7, 9},
                                                          std::vector<int64_t>{2, 24, 28, 28},
                                                          std::vector<int64_t>{2, 17, 61, 43}),
                                          testing::ValuesIn(kKinds)));

// A sample's result must not depend on other samples' extents, neither in the kernel nor in the reference.
TEST(ExpattTest, EverySampleHasItsOwnExtent) {
  const at::Tensor v = RandomTensor({4, 3, 9, 12}, at::kDouble);
  const at::Tensor valid = at::tensor({9, 12, 4, 7, 0, 5, 1, 12}, at::kLong).view({4, 2});
  for (const char* kind : kKinds) {
    const at::Tensor got = expatt(v, kind, Sigma(0.5), valid);
    EXPECT_LE(RelativeError(got, ExpattReference(v, kind, Sigma(0.5), valid)), 1e-14) << kind;
    EXPECT_TRUE(SameBits(got[1].narrow(1, 0, 4).narrow(2, 0, 7),
                         expatt(v.narrow(0, 1, 1).narrow(2, 0, 4).narrow(3, 0, 7), kind, Sigma(0.5))[0]));
    EXPECT_EQ(got[2].abs().max().item<double>(), 0);
  }
}

TEST(ExpattTest, AnEmptyBatchGivesAnEmptyResult) {
  const at::Tensor none = at::zeros({0, 8, 4, 5});
  EXPECT_EQ(expatt(none, "gaussian", Sigma(0.75)).sizes(), none.sizes());
  EXPECT_EQ(expatt_module(none, at::zeros({3, 8}), {}, {}, {}, "linear").sizes(),
            at::IntArrayRef({0, 3, 4, 5}));
  EXPECT_EQ(expatt(at::zeros({2, 8, 0, 5}), "cosine", Sigma(0.75)).numel(), 0);
}

// The paper's equation 10 divides by 2 sigma^2, so that sigma's sign does not matter.
TEST(ExpattTest, TheGaussianMapSquaresItsRadius) {
  const at::Tensor v = RandomTensor({1, 4, 6, 5}, at::kFloat);
  EXPECT_TRUE(SameBits(expatt(v, "gaussian", Sigma(-0.3)), expatt(v, "gaussian", Sigma(0.3))));
}

TEST(ExpattTest, InputsThatRequireGradTakeTheReference) {
  const at::Tensor v = RandomTensor({1, 4, 3, 3}, at::kDouble).requires_grad_();
  const at::Tensor sigma = Sigma(0.5, at::kDouble).requires_grad_();
  expatt(v, "gaussian", sigma).square().sum().backward();
  EXPECT_EQ(v.grad().sizes(), v.sizes());
  EXPECT_NE(sigma.grad().item<double>(), 0);
}

TEST(ExpattTest, ErrorsNameTheArgumentWhatWasExpectedAndWhatCame) {
  const at::Tensor v = at::zeros({2, 8, 4, 5});
  const auto op = [&](const at::Tensor& input, const char* kind, const at::Tensor& sigma,
                      const OptionalTensor& valid = {}) {
    return ErrorOf([&] { expatt(input, kind, sigma, valid); });
  };
  const auto module = [&](const at::Tensor& value, const OptionalTensor& out, const OptionalTensor& out_bias,
                          double sigma) {
    return ErrorOf([&] { expatt_module(v, value, {}, out, out_bias, "gaussian", sigma); });
  };
  EXPECT_THAT(op(v, "gauss", Sigma(1)),
              HasSubstr("expatt: argument 'kind' should be one of constant, linear, cosine, gaussian, "
                        "exponential_euclidean, exponential_manhattan, got 'gauss'"));
  EXPECT_THAT(op(v[0], "linear", Sigma(1)),
              HasSubstr("expatt: argument 'v' should be [B, C, H, W], got [8, 4, 5]"));
  EXPECT_THAT(op(v.unsqueeze(2), "linear", Sigma(1)),
              HasSubstr("expatt: argument 'v' should be [B, C, H, W], got [2, 8, 1, 4, 5]"));
  EXPECT_THAT(op(v.to(at::kInt), "linear", Sigma(1)), HasSubstr("argument 'v' should be float32"));
  EXPECT_THAT(op(v.to(at::kHalf), "linear", Sigma(1)),
              HasSubstr("argument 'v' should be float32 or bfloat16 or float64, got float16"));
  EXPECT_THAT(op(v, "gaussian", at::zeros({1})), HasSubstr("argument 'sigma' should have shape [], got [1]"));
  EXPECT_THAT(op(v, "gaussian", Sigma(1, at::kDouble)),
              HasSubstr("argument 'sigma' should be float32, got float64"));
  EXPECT_THAT(op(v, "gaussian", Sigma(0)),
              HasSubstr("expatt: argument 'sigma' should be finite and not zero, got 0"));
  EXPECT_THAT(op(v, "gaussian", Sigma(std::nan(""))), HasSubstr("should be finite and not zero, got nan"));
  EXPECT_THAT(op(v, "exponential_euclidean", Sigma(-1)),
              HasSubstr("argument 'sigma' should be finite and positive, got -1"));
  EXPECT_THAT(op(v, "exponential_manhattan", Sigma(std::nan(""))),
              HasSubstr("argument 'sigma' should be finite and positive, got nan"));
  EXPECT_EQ(op(v, "cosine", Sigma(std::nan(""))), "");
  EXPECT_THAT(op(v, "linear", Sigma(1), at::zeros({2, 2})), HasSubstr("argument 'valid' should be int64"));
  EXPECT_THAT(op(v, "linear", Sigma(1), at::tensor({4, 5, 4, 6}, at::kLong).view({2, 2})),
              HasSubstr("argument 'valid' at [1, 1] should lie in 0..5, got 6"));
  EXPECT_THAT(module(at::zeros({3, 7}), {}, {}, 1),
              HasSubstr("expatt_module: argument 'value_weight' should have shape [3, 8], got [3, 7]"));
  EXPECT_THAT(module(at::zeros({3}), {}, {}, 1),
              HasSubstr("argument 'value_weight' should be [dv, C], got [3]"));
  EXPECT_THAT(module(at::zeros({3, 8}), at::zeros({5, 4}), {}, 1),
              HasSubstr("argument 'out_weight' should have shape [5, 3], got [5, 4]"));
  EXPECT_THAT(module(at::zeros({3, 8}), at::zeros({5, 3}), at::zeros({3}), 1),
              HasSubstr("argument 'out_bias' should have shape [5], got [3]"));
  EXPECT_THAT(module(at::zeros({3, 8}), {}, {}, 0),
              HasSubstr("expatt_module: argument 'sigma' should be finite and not zero, got 0"));
  EXPECT_THAT(module(at::zeros({3, 8}).fill_(std::nan("")), {}, {}, 1),
              HasSubstr("argument 'value_weight' should be finite"));
}

}  // namespace
}  // namespace saccade::kernels
