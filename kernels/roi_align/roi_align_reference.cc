#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <vector>

#include "kernels/common/check.h"
#include "kernels/roi_align/roi_align_impl.h"

namespace saccade::kernels {
namespace {

// Returns the weight of each of `size` pixels in each bin of each region: [K, bins, size]. from, to and
// extent, each [K], are the region and the valid size of the map, in pixels.
at::Tensor AxisWeights(const at::Tensor& from, const at::Tensor& to, const at::Tensor& extent, bool aligned,
                       int64_t bins, int64_t sampling_ratio, const c10::SymInt& size) {
  const at::Tensor start = from - (aligned ? 0.5 : 0.0);
  at::Tensor length = to - (aligned ? 0.5 : 0.0) - start;
  if (!aligned) length = length.clamp_min(1);
  const at::Tensor bin = (length / bins).view({-1, 1, 1});
  const at::Tensor grid =
      sampling_ratio > 0 ? at::zeros_like(bin).add(sampling_ratio) : bin.ceil().clamp_min(0);
  const at::Tensor first = start.view({-1, 1, 1}) + at::arange(bins, from.options()).view({1, -1, 1}) * bin;
  // If their number follows the bin's size, there are fewer than two samples per pixel. So this bounds the
  // number of samples within the map, counted from two before the first of them.
  const c10::SymInt count = sampling_ratio > 0 ? c10::SymInt(sampling_ratio) : size * 2 + 8;
  at::Tensor index = at::arange(c10::Scalar(count), from.options());
  if (sampling_ratio <= 0) index = index + ((-1 - first) * grid / bin - 2).floor().clamp_min(0).nan_to_num(0);
  const at::Tensor position = first + (index + 0.5) * bin / grid;
  const at::Tensor none = at::zeros({}, from.options());
  const at::Tensor limit = extent.view({-1, 1, 1});
  const at::Tensor counts = (index < grid) & (position >= -1) & (position <= limit) & (limit > 0);
  const at::Tensor inside = at::where(counts, position, none).clamp_min(0);
  const at::Tensor low = at::minimum(inside.floor(), limit - 1).clamp_min(0);
  const at::Tensor beyond = at::where(low >= limit - 1, none, inside - low);
  const at::Tensor high = at::minimum(low + 1, (limit - 1).clamp_min(0));
  const at::Tensor share = at::where(counts, 1 / grid, none);
  std::vector<c10::SymInt> shape = {from.sym_size(0), c10::SymInt(bins), size};
  return at::zeros_symint(shape, from.options())
      .scatter_add(2, low.to(at::kLong), (1 - beyond) * share)
      .scatter_add(2, high.to(at::kLong), beyond * share);
}

// Pools all regions from one level.
at::Tensor PoolLevel(const RoiAlignArguments& call, size_t l) {
  const at::Tensor& map = call.levels[l];
  const auto accumulate = AccumulateType(map.scalar_type());
  const at::Tensor rois = call.rois.detach().to(accumulate);
  const at::Tensor sample = rois.select(1, 0).to(at::kLong);
  const OptionalTensor valid = call.ValidOf(l);
  // [K, C, T, H, W]; an image has one frame.
  at::Tensor pooled = Masked(map.to(accumulate), valid).index_select(0, sample);
  if (!call.temporal()) pooled = pooled.unsqueeze(2);
  const auto dims = static_cast<int64_t>(call.pooled.size());
  for (int64_t d = 0; d < dims; ++d) {
    const c10::SymInt size = map.sym_size(2 + d);
    const at::Tensor extent = valid.has_value()
                                  ? valid->select(1, d).index_select(0, sample).clamp_min(0).to(accumulate)
                                  : at::zeros_like(rois.select(1, 0)).add(c10::Scalar(size));
    const bool whole = call.temporal() && d > 0;
    const auto bound = [&](int64_t column) { return rois.select(1, column) * call.scales[l]; };
    const int64_t column = call.temporal() ? 1 : 2 - d;
    const at::Tensor from = whole ? at::zeros_like(extent) : bound(column);
    const at::Tensor to = whole ? extent : bound(call.temporal() ? 2 : 4 - d);
    const at::Tensor weights =
        AxisWeights(from, to, extent, whole || call.aligned, call.pooled[d], call.sampling_ratio, size);
    // [K, 1, 1, bins, size] times [K, C, other axes, size, ...]
    const int64_t axis = 5 - dims + d;
    pooled = at::matmul(pooled.movedim(axis, -1), weights.transpose(1, 2).unsqueeze(1).unsqueeze(1))
                 .movedim(-1, axis);
  }
  return call.temporal() ? pooled : pooled.squeeze(2);
}

}  // namespace

at::Tensor RoiLevels(const RoiAlignArguments& call) {
  const at::Tensor boxes = call.rois.detach().to(AccumulateType(call.rois.scalar_type()));
  const at::Tensor area =
      (boxes.select(1, 3) - boxes.select(1, 1)) * (boxes.select(1, 4) - boxes.select(1, 2));
  const auto level_of = [](double scale) {
    return static_cast<int64_t>(-std::log2(static_cast<float>(scale)));
  };
  const int64_t lowest = level_of(call.scales.front());
  const at::Tensor epsilon = at::zeros({}, boxes.options()).add(1e-6);
  const at::Tensor target =
      (call.canonical_level + (area.sqrt() / call.canonical_scale).log2() + epsilon).floor();
  return target.clamp(lowest, level_of(call.scales.back())).to(at::kLong) - lowest;
}

at::Tensor RoiAlignReference(const RoiAlignArguments& call) {
  CheckRoiAlign(call);
  at::Tensor out = PoolLevel(call, 0);
  if (call.levels.size() > 1) {
    const at::Tensor level_of = RoiLevels(call).view({-1, 1, 1, 1});
    const auto of_level = [&](size_t l, const at::Tensor& pooled) {
      return at::where(level_of == static_cast<int64_t>(l), pooled, at::zeros({}, pooled.options()));
    };
    out = of_level(0, out);
    for (size_t l = 1; l < call.levels.size(); ++l) out = out + of_level(l, PoolLevel(call, l));
  }
  return out.to(call.levels[0].scalar_type()).contiguous(call.levels[0].suggest_memory_format());
}

}  // namespace saccade::kernels
