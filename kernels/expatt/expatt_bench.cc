#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scalar_tensor.h>

#include <cmath>
#include <string>

#include "kernels/bench/bench.h"
#include "kernels/bench/paper_counts.h"
#include "kernels/expatt/expatt.h"
#include "kernels/expatt/expatt_impl.h"

namespace saccade::kernels {
namespace {

constexpr double kSigma = 0.75;

at::Tensor Sigma(at::ScalarType dtype) { return at::scalar_tensor(kSigma, at::TensorOptions(dtype)); }

at::Tensor Wide(const at::Tensor& t) { return t.to(at::kDouble); }

bool IsSeparableName(const std::string& kind) {
  return kind == "gaussian" || kind == "exponential_manhattan";
}

// Returns |i - j| / size.
at::Tensor Distances(int64_t size) {
  const at::Tensor index = at::arange(size, at::TensorOptions(at::kFloat));
  return (index.unsqueeze(1) - index).abs() / static_cast<double>(size);
}

// Norm(G + 1), written directly in ATen operators.
at::Tensor DenseMap(const std::string& kind, int64_t height, int64_t width) {
  const at::Tensor dy = Distances(height).view({height, 1, height, 1});
  const at::Tensor dx = Distances(width).view({1, width, 1, width});
  at::Tensor g;
  if (kind == "gaussian") {
    g = ((dy.square() + dx.square()) / (-2 * kSigma * kSigma)).exp();
  } else if (kind == "exponential_manhattan") {
    g = ((dy + dx) / -kSigma).exp();
  } else if (kind == "exponential_euclidean") {
    g = ((dy.square() + dx.square()).sqrt() / -kSigma).exp();
  } else {
    const auto h = static_cast<double>(height);
    const auto w = static_cast<double>(width);
    const at::Tensor part = ((dy * h).square() + (dx * w).square()).sqrt() / std::hypot(h, w);
    g = kind == "linear" ? 1 - part : (part * M_PI).cos().add(1).div(2);
  }
  const at::Tensor map = (g + 1).view({height * width, height * width});
  return map / map.sum(1, true);
}

// The precomputed parts of a separable map: both factors, and 1 / the sums of G + 1.
struct Separable {
  at::Tensor y, x, inverse;
};

Separable SeparableMap(const std::string& kind, int64_t height, int64_t width) {
  const auto line = [&](int64_t size) {
    const at::Tensor d = Distances(size);
    return kind == "gaussian" ? (d.square() / (-2 * kSigma * kSigma)).exp() : (d / -kSigma).exp();
  };
  const at::Tensor y = line(height);
  const at::Tensor x = line(width);
  const at::Tensor sums = y.sum(1, true) * x.sum(1) + static_cast<double>(height * width);
  return {y, x, sums.reciprocal()};
}

at::Tensor ApplyDense(const at::Tensor& v, const at::Tensor& map) {
  return at::matmul(v.flatten(2), map.t()).view(v.sizes());
}

at::Tensor ApplySeparable(const at::Tensor& v, const Separable& map) {
  return (at::matmul(at::matmul(map.y, v), map.x) + v.sum({2, 3}, true)) * map.inverse;
}

BenchInputs MakeOperator(const std::string& kind, at::IntArrayRef shape, at::ScalarType dtype) {
  const at::Tensor v = (at::randn(shape) + 0.2).to(dtype);
  const int64_t height = shape[2];
  const int64_t width = shape[3];
  const at::Tensor sigma = Sigma(at::kFloat);
  BenchInputs inputs;
  inputs.expected = ExpattReference(Wide(v), kind, Sigma(at::kDouble), {});
  if (kind == "constant") {
    inputs.candidates = {
        {"eager, mean", [=] { return v.mean({2, 3}, true).expand(v.sizes()).contiguous(); }}};
  } else {
    const at::Tensor map = DenseMap(kind, height, width).to(dtype);
    inputs.candidates = {{"eager", [=] { return ApplyDense(v, DenseMap(kind, height, width).to(dtype)); }},
                         {"eager, cached map", [=] { return ApplyDense(v, map); }}};
  }
  if (IsSeparableName(kind)) {
    Separable map = SeparableMap(kind, height, width);
    for (at::Tensor* t : {&map.y, &map.x, &map.inverse}) *t = t->to(dtype);
    inputs.candidates.push_back({"eager, separable", [=] { return ApplySeparable(v, map); }});
  }
  inputs.candidates.push_back({"saccade", [=] { return expatt(v, kind, sigma); }});
  return inputs;
}

void AddOperator(const std::string& kind, const BenchSize& size, at::ScalarType dtype,
                 std::vector<BenchCase>* cases) {
  cases->push_back({.op = "expatt",
                    .variant = kind + (dtype == at::kFloat ? ", float32" : ", bfloat16"),
                    .shape = size.name(),
                    .madds = ExpAttMadds(size.positions(), static_cast<double>(size.channels)) *
                             static_cast<double>(size.batch),
                    .min_bytes = 2 * size.elements() * (dtype == at::kFloat ? 4 : 2),
                    .make = [=] { return MakeOperator(kind, size.shape(), dtype); }});
}

// W_o P W_v x: the peers use the weights as trained, saccade uses folded weights.
BenchInputs MakeModule(at::IntArrayRef shape, int64_t value_channels) {
  const at::Tensor x = at::randn(shape) + 0.2;
  const at::Tensor value = at::randn({value_channels, shape[1]}) / std::sqrt(static_cast<double>(shape[1]));
  const at::Tensor out =
      at::randn({value_channels, value_channels}) / std::sqrt(static_cast<double>(value_channels));
  const at::Tensor folded = at::matmul(Wide(out), Wide(value)).to(at::kFloat);
  const Separable map = SeparableMap("gaussian", shape[2], shape[3]);
  const std::vector<int64_t> sizes = {shape[0], value_channels, shape[2], shape[3]};
  const auto eager = [=](const auto& apply) {
    const at::Tensor v = at::matmul(value, x.flatten(2)).view(sizes);
    return at::matmul(out, apply(v).flatten(2)).view(sizes);
  };
  const at::Tensor dense = DenseMap("gaussian", shape[2], shape[3]);
  BenchInputs inputs;
  inputs.expected = ExpattModuleReference(Wide(x), {Wide(value), {}, Wide(out), {}}, "gaussian", kSigma, {});
  inputs.candidates = {
      {"eager, cached map", [=] { return eager([&](const at::Tensor& v) { return ApplyDense(v, dense); }); }},
      {"eager, separable",
       [=] { return eager([&](const at::Tensor& v) { return ApplySeparable(v, map); }); }},
      {"eager, folded and separable",
       [=] { return ApplySeparable(at::matmul(folded, x.flatten(2)).view(sizes), map); }},
      {"saccade, not folded", [=] { return expatt_module(x, value, {}, out, {}, "gaussian", kSigma); }},
      {"saccade", [=] { return expatt_module(x, folded, {}, {}, {}, "gaussian", kSigma); }}};
  return inputs;
}

void AddModule(const BenchSize& size, int64_t value_channels, std::vector<BenchCase>* cases) {
  const auto dv = static_cast<double>(value_channels);
  const double mixing = size.positions() * dv * (static_cast<double>(size.channels) + dv);
  cases->push_back({.op = "expatt",
                    .variant = "module, gaussian, float32, dv " + std::to_string(value_channels),
                    .shape = size.name(),
                    .madds = (ExpAttMadds(size.positions(), dv) + mixing) * static_cast<double>(size.batch),
                    .min_bytes = 4 * size.elements() * (1 + dv / static_cast<double>(size.channels)),
                    .make = [=] { return MakeModule(size.shape(), value_channels); }});
}

// The paper's sizes and widths for the separable maps, one width for the others, and ResNet-50's modules.
void AddCases(std::vector<BenchCase>* cases) {
  for (const int64_t batch : {1, 8}) {
    for (const int64_t size : {14, 28, 56}) {
      for (const int64_t channels : {16, 24, 56}) {
        AddOperator("gaussian", {batch, channels, size}, at::kFloat, cases);
        AddOperator("exponential_manhattan", {batch, channels, size}, at::kFloat, cases);
      }
      AddOperator("gaussian", {batch, 16, size}, at::kBFloat16, cases);
      for (const char* kind : {"constant", "linear", "cosine", "exponential_euclidean"}) {
        AddOperator(kind, {batch, 16, size}, at::kFloat, cases);
      }
    }
    AddModule({batch, 128, 28}, 16, cases);
    AddModule({batch, 256, 14}, 24, cases);
  }
}
const BenchRegistration registered(AddCases);

}  // namespace
}  // namespace saccade::kernels
