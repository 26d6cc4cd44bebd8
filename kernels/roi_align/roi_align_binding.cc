#include "kernels/roi_align/roi_align_binding.h"

#include "kernels/common/check.h"

namespace saccade::kernels {
namespace {

// Returns the number of elements from the first to the last in memory; strides are never negative.
int64_t ElementsSpanned(const at::Tensor& map) {
  if (map.numel() == 0) return 0;
  int64_t last = 0;
  for (int64_t d = 0; d < map.dim(); ++d) last += (map.size(d) - 1) * map.stride(d);
  return last + 1;
}

}  // namespace

RoiAlignBound BindRoiAlign(const RoiAlignArguments& call) {
  CheckRoiAlign(call);
  RoiAlignBound bound;
  bound.levels = call.levels;
  bound.out = RoiAlignResult(call);
  bound.rois = Prepared(call.rois, call.levels[0]);
  RoiAlignProblem& problem = bound.problem;
  problem.levels = static_cast<int>(call.levels.size());
  problem.batch = call.levels[0].size(0);
  problem.channels = call.levels[0].size(1);
  for (size_t l = 0; l < call.levels.size(); ++l) {
    const at::Tensor& map = call.levels[l];
    OptionalTensor valid = call.ValidOf(l);
    if (valid.has_value()) bound.valid.push_back(*(valid = valid->contiguous()));
    problem.level[l] = {.map = MapOf(map),
                        .extent = ExtentOf(map, valid),
                        .scale = call.scales[l],
                        .elements = ElementsSpanned(map)};
  }
  problem.regions = call.rois.size(0);
  problem.rois = bound.rois.const_data_ptr();
  problem.temporal = call.temporal();
  if (call.levels.size() > 1) {
    bound.level_of = RoiLevels(call);
    problem.level_of = bound.level_of.const_data_ptr<int64_t>();
  }
  const size_t dims = call.pooled.size();
  for (size_t d = 0; d < dims; ++d) problem.pooled[kMaxSpatialDims - dims + d] = call.pooled[d];
  problem.sampling_ratio = call.sampling_ratio;
  problem.aligned = call.aligned;
  problem.out = bound.out.mutable_data_ptr();
  problem.channels_last = call.levels[0].suggest_memory_format() != at::MemoryFormat::Contiguous;
  return bound;
}

}  // namespace saccade::kernels
