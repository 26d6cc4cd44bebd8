#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>

#include <cmath>
#include <string>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/attention/attention_impl.h"
#include "kernels/bench/bench.h"
#include "kernels/bench/paper_counts.h"

namespace saccade::kernels {
namespace {

struct Size {
  int64_t batch, channels, side;

  std::vector<int64_t> shape() const { return {batch, channels, side, side}; }
  double positions() const { return static_cast<double>(side * side); }
  double elements() const { return static_cast<double>(batch * channels) * positions(); }
  std::string name() const {
    return std::to_string(batch) + "x" + std::to_string(channels) + "x" + std::to_string(side) + "x" +
           std::to_string(side);
  }
  // Scale of the logits, so that their spread does not depend on the number of channels.
  double scale() const { return 1 / std::sqrt(static_cast<double>(channels)); }
};

const char* NameOf(AttentionKind kind) {
  return kind == AttentionKind::kSoftmax ? "softmax" : kind == AttentionKind::kPooled ? "pool" : "1n";
}

at::Tensor Wide(const at::Tensor& t) { return t.to(at::kDouble); }

at::Tensor PooledIf(AttentionKind kind, const at::Tensor& map) {
  return kind == AttentionKind::kPooled ? at::max_pool2d(map, {2, 2}, {2, 2}, {0, 0}, {1, 1}, true) : map;
}

// The three kinds written directly in ATen operators.
at::Tensor Eager(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double scale,
                 AttentionKind kind) {
  const at::Tensor keys = PooledIf(kind, k).flatten(2);
  const at::Tensor values = PooledIf(kind, v).flatten(2);
  at::Tensor out;
  if (kind == AttentionKind::kMean) {
    out = at::matmul(at::matmul(values, keys.transpose(1, 2)), q.flatten(2)) / keys.size(2);
  } else {
    const at::Tensor logits = at::matmul(keys.transpose(1, 2), q.flatten(2)) * scale;
    out = at::matmul(values, at::softmax(logits, 1));
  }
  return out.view({q.size(0), v.size(1), q.size(2), q.size(3)});
}

// LibTorch's fused attention, which takes positions as rows.
at::Tensor Sdpa(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double scale,
                AttentionKind kind) {
  const auto rows = [](const at::Tensor& map) {
    return map.flatten(2).transpose(1, 2).contiguous().unsqueeze(1);
  };
  const at::Tensor out = at::scaled_dot_product_attention(rows(q), rows(PooledIf(kind, k)),
                                                          rows(PooledIf(kind, v)), {}, 0.0, false, scale);
  return out.squeeze(1).transpose(1, 2).contiguous().view({q.size(0), v.size(1), q.size(2), q.size(3)});
}

BenchInputs MakeOperator(const Size& size, AttentionKind kind, at::ScalarType dtype,
                         at::MemoryFormat format) {
  const auto map = [&] { return at::randn(size.shape()).add_(0.2).to(dtype).contiguous(format); };
  const at::Tensor q = map();
  const at::Tensor k = map();
  const at::Tensor v = map();
  const bool mean = kind == AttentionKind::kMean;
  const double scale = mean ? 1 : size.scale();
  BenchInputs inputs;
  inputs.expected = AttentionReference(Wide(q), Wide(k), Wide(v), 1, scale, kind, {});
  inputs.candidates = {{"eager", [=] { return Eager(q, k, v, scale, kind); }},
                       {"reference", [=] { return AttentionReference(q, k, v, 1, scale, kind, {}); }}};
  if (!mean) inputs.candidates.push_back({"sdpa", [=] { return Sdpa(q, k, v, scale, kind); }});
  inputs.candidates.push_back({"saccade", [=] {
                                 return mean ? attention_1n(q, k, v)
                                             : attention(q, k, v, 1, scale, kind == AttentionKind::kPooled);
                               }});
  return inputs;
}

// As in AttnNet: a transform of the values alone, the batch norm that follows, and the skip connection around
// both.
BenchInputs MakeModule(const Size& size, AttentionKind kind, at::ScalarType dtype) {
  const at::Tensor x = at::randn(size.shape()).to(dtype);
  AttentionWeights w;
  w.value_weight =
      (at::randn({size.channels, size.channels}) / std::sqrt(static_cast<double>(size.channels))).to(dtype);
  w.scale = at::randn({size.channels}).to(dtype);
  w.shift = at::randn({size.channels}).to(dtype);
  AttentionWeights exact = w;
  for (OptionalTensor* t : {&exact.value_weight, &exact.scale, &exact.shift}) *t = Wide(**t);
  const double scale = kind == AttentionKind::kMean ? 1 : size.scale();
  const auto value = [=] { return at::matmul(*w.value_weight, x.flatten(2)).view(x.sizes()); };
  const auto finished = [=](const at::Tensor& out) {
    const auto across = [](const OptionalTensor& t) { return t->view({-1, 1, 1}); };
    return out * across(w.scale) + across(w.shift) + x;
  };
  BenchInputs inputs;
  inputs.expected = AttentionModuleReference(Wide(x), kind, exact, 1, scale, true, {});
  inputs.candidates = {
      {"eager", [=] { return finished(Eager(x, x, value(), scale, kind)); }},
      {"reference", [=] { return AttentionModuleReference(x, kind, w, 1, scale, true, {}); }}};
  if (kind != AttentionKind::kMean) {
    inputs.candidates.push_back({"sdpa", [=] { return finished(Sdpa(x, x, value(), scale, kind)); }});
  }
  inputs.candidates.push_back(
      {"saccade", [=] { return attention_module(x, NameOf(kind), w, 1, scale, true); }});
  return inputs;
}

// Multiply-adds of one image, by the formula of the paper whose table contains the size.
double Madds(const Size& size, AttentionKind kind) {
  const auto side = static_cast<double>(size.side);
  const auto channels = static_cast<double>(size.channels);
  switch (kind) {
    case AttentionKind::kSoftmax:
      return SaoAttentionCost(side * side, channels).madds;
    case AttentionKind::kPooled:
      return SaoPooledAttentionCost(side * side, channels).madds;
    default:
      return SaoScaledAttentionCost(side * side, channels).madds;
  }
}

void AddOperator(const Size& size, AttentionKind kind, at::ScalarType dtype, at::MemoryFormat format,
                 std::vector<BenchCase>* cases) {
  const bool channels_last = format == at::MemoryFormat::ChannelsLast;
  // Keys and values rearranged into blocks, for one sample.
  const double keys = size.positions() / (kind == AttentionKind::kPooled ? 4 : 1);
  const double squares = 4.0 * static_cast<double>(size.channels * size.channels);
  cases->push_back(
      {.op = "attention",
       .variant = std::string(NameOf(kind)) + (dtype == at::kFloat ? ", float32" : ", bfloat16") +
                  (channels_last ? ", channels-last" : ""),
       .shape = size.name(),
       .madds = Madds(size, kind) * static_cast<double>(size.batch),
       // Reads q, k and v and writes the result.
       .min_bytes = 4 * size.elements() * (dtype == at::kFloat ? 4 : 2),
       .min_workspace_bytes =
           kind == AttentionKind::kMean ? squares : 8 * static_cast<double>(size.channels) * keys,
       .make = [=] { return MakeOperator(size, kind, dtype, format); }});
}

void AddModule(const Size& size, AttentionKind kind, at::ScalarType dtype, std::vector<BenchCase>* cases) {
  const auto channels = static_cast<double>(size.channels);
  cases->push_back(
      {.op = "attention",
       .variant = std::string("module ") + NameOf(kind) + (dtype == at::kFloat ? ", float32" : ", bfloat16"),
       .shape = size.name(),
       .madds =
           static_cast<double>(size.batch) * (Madds(size, kind) + size.positions() * channels * channels),
       .min_bytes = 3 * size.elements() * (dtype == at::kFloat ? 4 : 2),
       .make = [=] { return MakeModule(size, kind, dtype); }});
}

// The operator at the sizes of the papers' tables, and the module at the sizes of AttnNet's layers.
void AddCases(std::vector<BenchCase>* cases) {
  for (const auto kind : {AttentionKind::kSoftmax, AttentionKind::kPooled, AttentionKind::kMean}) {
    for (const Size& size : {Size{8, 8, 14}, Size{8, 8, 28}, Size{8, 8, 56}, Size{1, 64, 14},
                             Size{1, 128, 28}, Size{1, 256, 56}}) {
      AddOperator(size, kind, at::kFloat, at::MemoryFormat::Contiguous, cases);
    }
    AddOperator({1, 128, 28}, kind, at::kFloat, at::MemoryFormat::ChannelsLast, cases);
    AddOperator({1, 128, 28}, kind, at::kBFloat16, at::MemoryFormat::Contiguous, cases);
    for (const int64_t batch : {1, 8}) {
      for (const Size& size : {Size{batch, 32, 28}, Size{batch, 96, 14}, Size{batch, 160, 7}}) {
        AddModule(size, kind, at::kFloat, cases);
      }
    }
    AddModule({8, 96, 14}, kind, at::kBFloat16, cases);
  }
}

const BenchRegistration registered(AddCases);

}  // namespace
}  // namespace saccade::kernels
