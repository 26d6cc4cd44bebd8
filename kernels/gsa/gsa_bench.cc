#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/einsum.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/bench/bench.h"
#include "kernels/bench/paper_counts.h"
#include "kernels/gsa/gsa.h"
#include "kernels/gsa/gsa_impl.h"

namespace saccade::kernels {
namespace {

constexpr int64_t kHeads = 8;

struct Inputs {
  at::Tensor x, query, key, value, column, row, middle_scale, middle_shift, scale, shift;
};

Inputs Converted(const Inputs& in, at::ScalarType dtype) {
  const auto to = [dtype](const at::Tensor& t) { return t.to(dtype); };
  return {to(in.x),   to(in.query),        to(in.key),          to(in.value), to(in.column),
          to(in.row), to(in.middle_scale), to(in.middle_shift), to(in.scale), to(in.shift)};
}

at::Tensor PerChannel(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift) {
  return x * scale.view({-1, 1, 1}) + shift.view({-1, 1, 1});
}

// [B, heads, C / heads, H, W]
at::Tensor Projected(const at::Tensor& x, const at::Tensor& weight) {
  return at::conv2d(x, weight.view({weight.size(0), weight.size(1), 1, 1})).unflatten(1, {kHeads, -1});
}

// P of equation 6: the embedding, gathered for every pair of positions.
at::Tensor Reindexed(const at::Tensor& embedding, int64_t size) {
  const at::Tensor i = at::arange(size, at::kLong);
  return embedding.index({i.unsqueeze(0) - i.unsqueeze(1) + size - 1});
}

// The module as in the paper's appendix: positions before channels, one einsum per equation. Without
// `content`, only the positional attention.
at::Tensor EagerModule(const Inputs& in, bool content) {
  const at::Tensor x = in.x.permute({0, 2, 3, 1});
  const auto project = [&](const at::Tensor& weight) {
    return at::einsum("dnk,bxyd->bxynk", {weight.t().unflatten(1, {kHeads, -1}), x});
  };
  const at::Tensor q = project(in.query);
  const at::Tensor v = project(in.value);
  at::Tensor scores = at::einsum("bxynk,xik->bxyin", {q, Reindexed(in.column, q.size(1))});
  const at::Tensor columns = at::einsum("bxyin,biynv->bxynv", {scores, v}).flatten(3);
  const at::Tensor middle = (columns * in.middle_scale + in.middle_shift).unflatten(3, {kHeads, -1});
  scores = at::einsum("bxynk,yik->bxyin", {q, Reindexed(in.row, q.size(2))});
  at::Tensor y = at::einsum("bxyin,bxinv->bxynv", {scores, middle});
  if (content) {
    const at::Tensor weights = project(in.key).flatten(1, 2).softmax(1).view(q.sizes());
    y = y + at::einsum("bxynk,bnkv->bxynv", {q, at::einsum("bxynk,bxynv->bnkv", {weights, v})});
  }
  return (y.flatten(3) * in.scale + in.shift).permute({0, 3, 1, 2});
}

// The same, arranged for channels-first maps: convolutions, and einsums that need fewer copies.
at::Tensor ChannelsFirstModule(const Inputs& in, bool content) {
  const at::Tensor q = Projected(in.x, in.query);
  const at::Tensor v = Projected(in.x, in.value);
  at::Tensor scores = at::einsum("bnkxy,xik->bnxyi", {q, Reindexed(in.column, q.size(3))});
  const at::Tensor columns = at::einsum("bnxyi,bnviy->bnvxy", {scores, v}).flatten(1, 2);
  const at::Tensor middle = PerChannel(columns, in.middle_scale, in.middle_shift).unflatten(1, {kHeads, -1});
  scores = at::einsum("bnkxy,yik->bnxyi", {q, Reindexed(in.row, q.size(4))});
  at::Tensor y = at::einsum("bnxyi,bnvxi->bnvxy", {scores, middle});
  if (content) {
    const at::Tensor weights = Projected(in.x, in.key).flatten(3).softmax(-1);
    y = y + at::einsum("bnkxy,bnkv->bnvxy", {q, at::einsum("bnkp,bnvp->bnkv", {weights, v.flatten(3)})});
  }
  return PerChannel(y.flatten(1, 2), in.scale, in.shift);
}

// The same without einsum and gather: one product computes the scores of all offsets, a strided view selects
// those of an axis, and batched matrix products do the rest.
at::Tensor AlongRows(const at::Tensor& q, const at::Tensor& values, const at::Tensor& embedding) {
  const int64_t size = q.size(-2);
  const at::Tensor all = at::matmul(q, embedding.t()).contiguous();  // [..., position, offset]
  std::vector<int64_t> strides = all.strides().vec();
  strides[strides.size() - 2] -= 1;
  std::vector<int64_t> sizes = all.sizes().vec();
  sizes.back() = size;
  return at::matmul(all.as_strided(sizes, strides, all.storage_offset() + size - 1), values);
}

at::Tensor StridedModule(const Inputs& in, bool content) {
  const at::Tensor q = Projected(in.x, in.query);
  const at::Tensor v = Projected(in.x, in.value);
  // [B, heads, across, along, C / heads]
  const auto turned = [](const at::Tensor& t, bool columns) {
    return columns ? t.permute({0, 1, 4, 3, 2}) : t.permute({0, 1, 3, 4, 2});
  };
  const at::Tensor columns = AlongRows(turned(q, true), turned(v, true), in.column).permute({0, 1, 4, 3, 2});
  const at::Tensor middle =
      PerChannel(columns.flatten(1, 2), in.middle_scale, in.middle_shift).unflatten(1, {kHeads, -1});
  at::Tensor y = AlongRows(turned(q, false), turned(middle, false), in.row).permute({0, 1, 4, 2, 3});
  if (content) {
    const at::Tensor weights = Projected(in.x, in.key).flatten(3).softmax(-1);
    const at::Tensor context = at::matmul(v.flatten(3), weights.transpose(-2, -1));
    y = y + at::matmul(context, q.flatten(3)).view(q.sizes());
  }
  return PerChannel(y.flatten(1, 2), in.scale, in.shift);
}

BenchInputs Make(const BenchSize& size, std::string_view content, at::ScalarType dtype,
                 at::MemoryFormat format) {
  const int64_t channels = size.channels;
  const int64_t head = channels / kHeads;
  const auto matrix = [](int64_t rows, int64_t columns, double divisor) {
    return at::randn({rows, columns}) / std::sqrt(divisor);
  };
  const auto square = [&] { return matrix(channels, channels, static_cast<double>(channels)); };
  const auto embedding = [&] {
    return matrix(2 * size.side - 1, head, static_cast<double>(head * size.side));
  };
  const auto vector = [&] { return at::randn({channels}); };
  Inputs in = Converted({at::randn(size.shape()), square(), square(), square(), embedding(), embedding(),
                         vector(), vector(), vector(), vector()},
                        dtype);
  in.x = in.x.contiguous(format);
  const OptionalTensor none;
  const auto reference = [none, content](const Inputs& of) {
    return GsaModuleReference(of.x, {of.query, of.key, of.value, none, none, none, of.scale, of.shift},
                              {kHeads, of.column, of.row, of.middle_scale, of.middle_shift, content}, none);
  };
  const bool global = content == "global";
  BenchInputs inputs;
  inputs.expected = reference(Converted(in, at::kDouble));
  inputs.candidates = {{"eager", [=] { return EagerModule(in, global); }},
                       {"eager, channels first", [=] { return ChannelsFirstModule(in, global); }},
                       {"reference", [=] { return reference(in); }},
                       {"eager, strided", [=] { return StridedModule(in, global); }},
                       {"saccade", [=] {
                          return gsa_module(
                              in.x, {in.query, in.key, in.value, none, none, none, in.scale, in.shift},
                              {kHeads, in.column, in.row, in.middle_scale, in.middle_shift, content});
                        }}};
  return inputs;
}

void AddModule(const BenchSize& size, std::string_view content, at::ScalarType dtype, at::MemoryFormat format,
               std::vector<BenchCase>* cases) {
  const double channels = static_cast<double>(size.channels);
  const double side = static_cast<double>(size.side);
  const bool global = content == "global";
  const double products = (global ? 3 : 2) * size.positions() * channels * channels;
  const double attention = global ? GsaMadds(side, side, channels, static_cast<double>(kHeads))
                                  : 4 * size.positions() * side * channels;
  const double bytes = dtype == at::kFloat ? 4 : 2;
  cases->push_back({.op = "gsa",
                    .variant = std::string("module, ") + (global ? "" : "positional only, ") +
                               (dtype == at::kFloat ? "float32" : "bfloat16") +
                               (format == at::MemoryFormat::ChannelsLast ? ", channels-last" : ""),
                    .shape = size.name(),
                    .madds = static_cast<double>(size.batch) * (products + attention),
                    .min_bytes = 2 * size.elements() * bytes,  // reads x, writes the result
                    .make = [=] { return Make(size, content, dtype, format); }});
}

// The maps of the paper's network: its four groups, and 14x14x64 as the smallest.
void AddCases(std::vector<BenchCase>* cases) {
  const std::vector<BenchSize> sizes = {{1, 64, 14}, {1, 64, 56}, {1, 128, 28}, {1, 256, 14}, {1, 512, 7}};
  for (BenchSize size : sizes) {
    AddModule(size, "global", at::kFloat, at::MemoryFormat::Contiguous, cases);
    size.batch = 8;
    AddModule(size, "global", at::kFloat, at::MemoryFormat::Contiguous, cases);
  }
  AddModule(sizes[1], "none", at::kFloat, at::MemoryFormat::Contiguous, cases);
  AddModule(sizes[1], "global", at::kFloat, at::MemoryFormat::ChannelsLast, cases);
  AddModule(sizes[1], "global", at::kBFloat16, at::MemoryFormat::ChannelsLast, cases);
}

const BenchRegistration registered(AddCases);

}  // namespace
}  // namespace saccade::kernels
