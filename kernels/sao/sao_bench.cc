#include <ATen/TensorOperators.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>

#include <cmath>
#include <string>

#include "kernels/bench/bench.h"
#include "kernels/bench/paper_counts.h"
#include "kernels/sao/sao.h"
#include "kernels/sao/sao_impl.h"

namespace saccade::kernels {
namespace {

constexpr int64_t kHeads = 4;

struct Inputs {
  at::Tensor x, value_weight, w, scale, shift;
};

// The module written directly in ATen operators.
at::Tensor EagerModule(const Inputs& in) {
  const at::Tensor flat = in.x.flatten(2);
  const at::Tensor q = flat.unflatten(1, {kHeads, -1});
  const at::Tensor v = at::matmul(in.value_weight, flat).unflatten(1, {kHeads, -1});
  const at::Tensor scores = at::matmul(in.w.view({kHeads, 1, -1}), q);
  const at::Tensor sums = v.sum(-1, true) * scores + at::matmul(v, scores.transpose(-2, -1));
  return (sums.flatten(1, 2) * in.scale.unsqueeze(1) + in.shift.unsqueeze(1) + flat).view(in.x.sizes());
}

// This library's algorithm in ATen operators: V is not stored; one product for all sums, one for the result.
at::Tensor FoldedModule(const Inputs& in) {
  const int64_t batch = in.x.size(0);
  const int64_t channels = in.x.size(1);
  const int64_t head_channels = channels / kHeads;
  const at::Tensor flat = in.x.flatten(2);
  const int64_t positions = flat.size(2);
  const at::Tensor q = flat.reshape({batch * kHeads, head_channels, positions});
  const at::Tensor weights = in.w.view({kHeads, 1, head_channels}).repeat({batch, 1, 1});
  const at::Tensor ones = at::ones({batch * kHeads, 1, positions}, in.x.options());
  const at::Tensor rows = at::cat({at::bmm(weights, q), ones}, 1);  // [B h, 2, N]
  const at::Tensor moments = at::bmm(flat, rows.view({batch, 2 * kHeads, positions}).transpose(1, 2));
  const at::Tensor mixed = at::matmul(in.value_weight, moments);  // [B, C, 2 h]
  const at::Tensor own = mixed.view({batch, kHeads, head_channels, kHeads, 2})
                             .diagonal(0, 1, 3)
                             .permute({0, 3, 1, 2})
                             .reshape({batch, channels, 2});
  // The weighted sum is the first row; the slope is the plain sum.
  const at::Tensor slope = own.select(2, 1) * in.scale;
  const at::Tensor offset = own.select(2, 0) * in.scale + in.shift;
  const at::Tensor coefficients =
      at::cat({slope.unsqueeze(2), offset.unsqueeze(2)}, 2).view({batch * kHeads, head_channels, 2});
  return at::baddbmm(q, coefficients, rows).view(in.x.sizes());
}

at::Tensor Wide(const at::Tensor& t) { return t.to(at::kDouble); }

BenchInputs MakeModule(at::IntArrayRef shape, at::ScalarType dtype, at::MemoryFormat format) {
  const int64_t channels = shape[1];
  const auto weights = [&](at::IntArrayRef sizes, double divisor) {
    return (at::randn(sizes) / divisor).to(dtype);
  };
  const Inputs in = {at::randn(shape).to(dtype).contiguous(format),
                     weights({channels, channels}, std::sqrt(static_cast<double>(channels))),
                     weights({channels}, 1), weights({channels}, static_cast<double>(shape[2] * shape[3])),
                     weights({channels}, 1)};
  const auto reference = [](const Inputs& of) {
    return SaoModuleReference(of.x, {of.value_weight, of.w, of.scale, of.shift}, kHeads, true, true, {});
  };
  BenchInputs inputs;
  inputs.expected =
      reference({Wide(in.x), Wide(in.value_weight), Wide(in.w), Wide(in.scale), Wide(in.shift)});
  inputs.candidates = {
      {"eager", [=] { return EagerModule(in); }},
      {"reference", [=] { return reference(in); }},
      {"eager, folded", [=] { return FoldedModule(in); }},
      {"saccade", [=] { return sao_module(in.x, {in.value_weight, in.w, in.scale, in.shift}, kHeads); }}};
  return inputs;
}

// The paper's equation 6 for one head.
at::Tensor EagerOperator(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& w) {
  const at::Tensor values = v.flatten(2);
  const at::Tensor local = values.mean(-1, true) * at::matmul(w, q.flatten(2)).unsqueeze(1);
  const at::Tensor scores = at::matmul(w, k.flatten(2)).unsqueeze(-1);
  return (local + at::matmul(values, scores) / values.size(-1)).view(q.sizes());
}

BenchInputs MakeOperator(at::IntArrayRef shape) {
  const at::Tensor q = at::randn(shape) + 0.2;
  const at::Tensor k = at::randn(shape) + 0.2;
  const at::Tensor v = at::randn(shape) + 0.2;
  const at::Tensor w = at::randn({shape[1]});
  BenchInputs inputs;
  inputs.expected = SaoReference(Wide(q), Wide(k), Wide(v), Wide(w), 1, true, {});
  inputs.candidates = {{"eager", [=] { return EagerOperator(q, k, v, w); }},
                       {"reference", [=] { return SaoReference(q, k, v, w, 1, true, {}); }},
                       {"saccade", [=] { return sao(q, k, v, w); }}};
  return inputs;
}

void AddOperator(const BenchSize& size, std::vector<BenchCase>* cases) {
  cases->push_back({.op = "sao",
                    .variant = "operator, float32",
                    .shape = size.name(),
                    .madds = SaoCost(size.positions(), static_cast<double>(size.channels)).madds *
                             static_cast<double>(size.batch),
                    .min_bytes = 16 * size.elements(),  // reads q, k and v, writes the result
                    .make = [=] { return MakeOperator(size.shape()); }});
}

void AddModule(const BenchSize& size, at::ScalarType dtype, at::MemoryFormat format,
               std::vector<BenchCase>* cases) {
  const bool channels_last = format == at::MemoryFormat::ChannelsLast;
  const double channels = static_cast<double>(size.channels);
  const double transform = size.positions() * channels * channels;
  cases->push_back(
      {.op = "sao",
       .variant = std::string("module, ") + (dtype == at::kFloat ? "float32" : "bfloat16") +
                  (channels_last ? ", channels-last" : ""),
       .shape = size.name(),
       .madds = static_cast<double>(size.batch) * (SaoCost(size.positions(), channels).madds + transform),
       // Reads x for the sums and for the residual, and writes the result.
       .min_bytes = 3 * size.elements() * (dtype == at::kFloat ? 4 : 2),
       .make = [=] { return MakeModule(size.shape(), dtype, format); }});
}

// The paper's three sizes: the operator alone; the module for batch 1 and 8, float32 in both layouts and
// bfloat16 channels-last.
void AddCases(std::vector<BenchCase>* cases) {
  const auto add_modules = [&](at::ScalarType dtype, at::MemoryFormat format) {
    for (const int64_t batch : {1, 8}) {
      AddModule({batch, 64, 14}, dtype, format, cases);
      AddModule({batch, 128, 28}, dtype, format, cases);
      AddModule({batch, 256, 56}, dtype, format, cases);
    }
  };
  AddOperator({1, 64, 14}, cases);
  AddOperator({1, 128, 28}, cases);
  AddOperator({1, 256, 56}, cases);
  add_modules(at::kFloat, at::MemoryFormat::Contiguous);
  add_modules(at::kFloat, at::MemoryFormat::ChannelsLast);
  add_modules(at::kBFloat16, at::MemoryFormat::ChannelsLast);
}

const BenchRegistration registered(AddCases);

}  // namespace
}  // namespace saccade::kernels
