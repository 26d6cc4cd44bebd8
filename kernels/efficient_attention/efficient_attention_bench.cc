#include <ATen/TensorOperators.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/conv3d.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>

#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/bench/bench.h"
#include "kernels/bench/paper_counts.h"
#include "kernels/efficient_attention/efficient_attention.h"
#include "kernels/efficient_attention/efficient_attention_impl.h"

namespace saccade::kernels {
namespace {

struct Inputs {
  at::Tensor x, key, query, value, key_bias, query_bias, value_bias, out, out_bias;
  std::string normalization;
};

at::Tensor Convolved(const at::Tensor& x, const at::Tensor& matrix, const at::Tensor& bias) {
  std::vector<int64_t> shape(static_cast<size_t>(x.dim()), 1);
  shape[0] = matrix.size(0);
  shape[1] = matrix.size(1);
  return x.dim() == 5 ? at::conv3d(x, matrix.view(shape), bias) : at::conv2d(x, matrix.view(shape), bias);
}

at::Tensor Reprojected(const Inputs& in, const at::Tensor& attended) {
  std::vector<int64_t> shape = in.x.sizes().vec();
  shape[1] = attended.size(1);
  return Convolved(attended.reshape(shape), in.out, in.out_bias) + in.x;
}

// The paper's module written directly in ATen operators.
at::Tensor EagerModule(const Inputs& in) {
  at::Tensor q = Convolved(in.x, in.query, in.query_bias).flatten(2);
  at::Tensor k = Convolved(in.x, in.key, in.key_bias).flatten(2);
  const at::Tensor v = Convolved(in.x, in.value, in.value_bias).flatten(2);
  if (in.normalization == "softmax") {
    q = at::softmax(q, 1);
    k = at::softmax(k, 2);
  } else {
    const double root = std::sqrt(static_cast<double>(k.size(2)));
    q = q / root;
    k = k / root;
  }
  return Reprojected(in, at::matmul(at::matmul(v, k.transpose(1, 2)), q));
}

// The same with LibTorch's fused softmax attention, twice: the keys' weights attend to the positions, then
// the positions attend to the result.
at::Tensor TwoSdpaModule(const Inputs& in) {
  const auto attend = [](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    return at::scaled_dot_product_attention(q, k, v, {}, 0.0, false, 1.0);
  };
  const int64_t batch = in.x.size(0);
  const at::Tensor positions = in.x.flatten(2).transpose(1, 2).unsqueeze(1);  // [B, 1, N, C]
  const auto each = [&](const at::Tensor& rows) {
    return rows.view({1, 1, rows.size(0), rows.size(1)}).expand({batch, 1, rows.size(0), rows.size(1)});
  };
  const at::Tensor gathered = attend(each(in.key), positions, positions);
  const at::Tensor values = at::matmul(gathered, in.value.t()) + in.value_bias;
  // The queries are projected first, because the second attention has no argument for their bias.
  const at::Tensor query = Convolved(in.x, in.query, in.query_bias).flatten(2).transpose(1, 2).unsqueeze(1);
  const at::Tensor unit = at::eye(in.query.size(0), in.x.options());
  return Reprojected(in, attend(query, each(unit), values).squeeze(1).transpose(1, 2));
}

EaWeights WeightsOf(const Inputs& in) {
  return {in.key, in.query, in.value, in.key_bias, in.query_bias, in.value_bias, in.out, in.out_bias};
}

at::Tensor Saccade(const Inputs& in) {
  return efficient_attention_module(in.x, WeightsOf(in), 1, in.normalization, true);
}

struct Shape {
  std::string name;
  std::vector<int64_t> size;  // [B, C, *spatial]
  int64_t keys, values;
};

BenchInputs Make(const Shape& shape, const std::string& normalization, at::ScalarType dtype,
                 bool channels_last) {
  const auto weights = [&](int64_t rows, int64_t columns) {
    return (at::randn({rows, columns}) / std::sqrt(static_cast<double>(columns))).to(dtype);
  };
  const auto bias = [&](int64_t size) { return at::randn({size}).to(dtype); };
  const int64_t channels = shape.size[1];
  const auto format = !channels_last           ? at::MemoryFormat::Contiguous
                      : shape.size.size() == 5 ? at::MemoryFormat::ChannelsLast3d
                                               : at::MemoryFormat::ChannelsLast;
  const Inputs in = {at::randn(shape.size).to(dtype).contiguous(format),
                     weights(shape.keys, channels),
                     weights(shape.keys, channels),
                     weights(shape.values, channels),
                     bias(shape.keys),
                     bias(shape.keys),
                     bias(shape.values),
                     weights(channels, shape.values),
                     bias(channels),
                     normalization};
  const auto wide = [](const at::Tensor& t) { return t.to(at::kDouble); };
  const EaWeights exact{wide(in.key),        wide(in.query),      wide(in.value), wide(in.key_bias),
                        wide(in.query_bias), wide(in.value_bias), wide(in.out),   wide(in.out_bias)};
  BenchInputs inputs;
  inputs.expected = EaModuleReference(wide(in.x), exact, 1, normalization, true, {});
  const auto reference = [in] {
    return EaModuleReference(in.x, WeightsOf(in), 1, in.normalization, true, {});
  };
  inputs.candidates = {{"eager", [in] { return EagerModule(in); }},
                       {"reference", reference},
                       {"saccade", [in] { return Saccade(in); }}};
  if (normalization == "softmax" && dtype == at::kFloat) {
    inputs.candidates.push_back({"2xsdpa", [in] { return TwoSdpaModule(in); }});
  }
  return inputs;
}

// The seven modules of EA Mask R-CNN, and the sizes of the paper's comparisons with d = 64.
std::vector<Shape> Shapes() {
  return {{"fpn1 1x256x224x320", {1, 256, 224, 320}, 64, 64},
          {"fpn2 1x256x112x160", {1, 256, 112, 160}, 64, 64},
          {"fpn3 1x256x56x80", {1, 256, 56, 80}, 64, 64},
          {"fpn4 1x256x28x40", {1, 256, 28, 40}, 64, 64},
          {"fpn5 1x256x14x20", {1, 256, 14, 20}, 64, 64},
          {"res3 1x1024x56x80", {1, 1024, 56, 80}, 64, 64},
          {"res4 1x2048x28x40", {1, 2048, 28, 40}, 64, 64},
          {"1x64x64x64", {1, 64, 64, 64}, 32, 64},
          {"1x64x128x128", {1, 64, 128, 128}, 32, 64},
          {"1x64x256x256", {1, 64, 256, 256}, 32, 64},
          {"volume 1x64x64x64x32", {1, 64, 64, 64, 32}, 32, 64}};
}

void AddCase(const Shape& shape, const std::string& normalization, at::ScalarType dtype, bool channels_last,
             std::vector<BenchCase>* cases) {
  double positions = static_cast<double>(shape.size[0]);
  for (size_t d = 2; d < shape.size.size(); ++d) positions *= static_cast<double>(shape.size[d]);
  const auto channels = static_cast<double>(shape.size[1]);
  const auto keys = static_cast<double>(shape.keys), values = static_cast<double>(shape.values);
  const double bytes = dtype == at::kFloat ? 4 : 2;
  cases->push_back({.op = "efficient_attention",
                    .variant = normalization + (dtype == at::kFloat ? "" : ", bfloat16") +
                               (channels_last ? ", channels-last" : ""),
                    .shape = shape.name,
                    .madds = EaCost(positions, channels, keys, values).madds,
                    .min_bytes = 3 * positions * channels * bytes,
                    // S, and the matrix computed from it.
                    .min_workspace_bytes = 2 * keys * channels * 4,
                    .make = [=] { return Make(shape, normalization, dtype, channels_last); }});
}

void AddCases(std::vector<BenchCase>* cases) {
  for (const Shape& shape : Shapes()) AddCase(shape, "softmax", at::kFloat, false, cases);
  for (const Shape& shape : Shapes()) {
    if (shape.size[1] == 256) AddCase(shape, "softmax", at::kFloat, true, cases);
  }
  for (const Shape& shape : Shapes()) {
    if (shape.size[1] == 256) AddCase(shape, "scaling", at::kFloat, false, cases);
  }
  AddCase(Shapes()[1], "softmax", at::kBFloat16, true, cases);
}

const BenchRegistration registered(AddCases);

}  // namespace
}  // namespace saccade::kernels
