#include "kernels/sao/sao_bench.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>

#include <memory>
#include <sstream>

#include "kernels/sao/sao.h"
#include "kernels/sao/sao_impl.h"

namespace saccade::kernels {
namespace {

constexpr int64_t kHeads = 4;

struct Inputs {
  at::Tensor x, value_weight, w, scale, shift, out;
};

// As one writes the module down.
at::Tensor Eager(const Inputs& in) {
  const at::Tensor flat = in.x.flatten(2);
  const at::Tensor q = flat.unflatten(1, {kHeads, -1});
  const at::Tensor v = at::matmul(in.value_weight, flat).unflatten(1, {kHeads, -1});
  const at::Tensor scores = at::matmul(in.w.view({kHeads, 1, -1}), q);
  const at::Tensor sums = v.sum(-1, true) * scores + at::matmul(v, scores.transpose(-2, -1));
  return (sums.flatten(1, 2) * in.scale.unsqueeze(1) + in.shift.unsqueeze(1) + flat).view(in.x.sizes());
}

// Our own algebra in ATen's operators: V never formed, one product for all sums, one for the result.
at::Tensor Folded(const Inputs& in) {
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
  // The weighted sum comes first among the rows; the slope is the plain sum.
  const at::Tensor slope = own.select(2, 1) * in.scale;
  const at::Tensor offset = own.select(2, 0) * in.scale + in.shift;
  const at::Tensor coefficients =
      at::cat({slope.unsqueeze(2), offset.unsqueeze(2)}, 2).view({batch * kHeads, head_channels, 2});
  return at::baddbmm(q, coefficients, rows).view(in.x.sizes());
}

std::string CheckAgainst(const at::Tensor& expected, const at::Tensor& got, double allowed,
                         const char* name) {
  const double error = at::linalg_vector_norm(got.to(at::kDouble) - expected).item<double>() /
                       at::linalg_vector_norm(expected).item<double>();
  if (error <= allowed) return "";
  std::ostringstream text;
  text << name << " is off by " << error << " relative to float64; expected at most " << allowed;
  return text.str();
}

std::string Check(const Inputs& in) {
  const auto wide = [](const at::Tensor& t) { return t.to(at::kDouble); };
  const at::Tensor expected = SaoModuleReference(wide(in.x), wide(in.value_weight), wide(in.w),
                                                 wide(in.scale), wide(in.shift), kHeads, true, true, {});
  const double allowed = in.x.scalar_type() == at::kFloat ? 1e-6 : 1e-2;
  const at::Tensor ours = sao_module(in.x, in.value_weight, in.w, in.scale, in.shift, kHeads);
  std::string wrong = CheckAgainst(expected, ours, allowed, "sao_module");
  // A peer that computes something else would be no peer; its rounding is its own affair.
  if (wrong.empty()) wrong = CheckAgainst(expected, Eager(in), 20 * allowed, "eager");
  if (wrong.empty()) wrong = CheckAgainst(expected, Folded(in), 20 * allowed, "folded");
  return wrong;
}

void AddCase(int64_t batch, int64_t channels, int64_t size, at::ScalarType dtype, at::MemoryFormat format,
             std::vector<BenchCase>* cases) {
  const bool channels_last = format == at::MemoryFormat::ChannelsLast;
  std::ostringstream name;
  name << "sao_module " << batch << "x" << channels << "x" << size << "x" << size
       << (dtype == at::kFloat ? " float32" : " bfloat16") << (channels_last ? " channels-last" : "");
  // Made when the case is checked, not when it is listed: few are run at a time.
  const auto in = std::make_shared<Inputs>();
  BenchCase bench;
  bench.name = name.str();
  bench.check = [=] {
    const auto weights = [&](at::IntArrayRef shape, double divisor) {
      return (at::randn(shape) / divisor).to(dtype);
    };
    in->x = at::randn({batch, channels, size, size}).to(dtype).contiguous(format);
    in->value_weight = weights({channels, channels}, std::sqrt(static_cast<double>(channels)));
    in->w = weights({channels}, 1);
    in->scale = weights({channels}, static_cast<double>(size * size));
    in->shift = weights({channels}, 1);
    in->out = at::empty_like(in->x);
    return Check(*in);
  };
  bench.candidates = {
      {"saccade", [in] { sao_module(in->x, in->value_weight, in->w, in->scale, in->shift, kHeads); }},
      {"ATen, eager composition", [in] { Eager(*in); }},
      {"ATen, folded as ours", [in] { Folded(*in); }}};
  const double map_bytes =
      static_cast<double>(batch * channels * size * size) * (dtype == at::kFloat ? 4 : 2);
  bench.bytes = 3 * map_bytes;  // read for the sums, read for the residual, written
  bench.copy = [in] { in->out.copy_(in->x); };
  bench.copy_bytes = 2 * map_bytes;
  cases->push_back(std::move(bench));
}

}  // namespace

void AddSaoBenchmarks(std::vector<BenchCase>* cases) {
  const auto add_sizes = [&](at::ScalarType dtype, at::MemoryFormat format) {
    for (const int64_t batch : {1, 8}) {
      AddCase(batch, 64, 14, dtype, format, cases);
      AddCase(batch, 128, 28, dtype, format, cases);
      AddCase(batch, 256, 56, dtype, format, cases);
    }
  };
  add_sizes(at::kFloat, at::MemoryFormat::Contiguous);
  add_sizes(at::kFloat, at::MemoryFormat::ChannelsLast);
  add_sizes(at::kBFloat16, at::MemoryFormat::ChannelsLast);
}

}  // namespace saccade::kernels
