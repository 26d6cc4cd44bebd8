#include <c10/util/Exception.h>
#include <torch/library.h>

#include <cmath>

#include "kernels/common/bfloat16.h"
#include "kernels/common/check.h"
#include "kernels/common/cpu_run.h"
#include "kernels/roi_align/roi_align_axis.h"
#include "kernels/roi_align/roi_align_binding.h"
#include "kernels/roi_align/roi_align_cpu.h"

namespace saccade::kernels {
namespace {

// For the CPU only, where reading values needs no synchronisation.
template <typename A>
void CheckRegions(const RoiAlignArguments& call, const RoiAlignProblem& p) {
  const A* roi = static_cast<const A*>(p.rois);
  const int64_t columns = NumbersPerRegion(p);
  for (int64_t k = 0; k < p.regions; ++k, roi += columns) {
    for (int64_t i = 0; i < columns; ++i) {
      TORCH_CHECK(std::isfinite(roi[i]), call.op, ": argument '", call.roi_name, "' at [", k, ", ", i,
                  "] should be finite, got ", roi[i]);
    }
    TORCH_CHECK(roi[0] >= 0 && roi[0] < static_cast<A>(p.batch), call.op, ": argument '", call.roi_name,
                "' at [", k, ", 0] should be a sample in 0..", p.batch - 1, ", got ", roi[0]);
    const int64_t level = p.level_of == nullptr ? 0 : p.level_of[k];
    if (level < 0 || level >= p.levels) continue;
    for (int d = 0; d < kMaxSpatialDims; ++d) {
      TORCH_CHECK(RoiAxisOf<A>(p, p.level[level], k, d).grid <= kMaxRoiGrid, call.op, ": argument '",
                  call.roi_name, "' at [", k, "] should take at most ", kMaxRoiGrid,
                  " samples per bin along each axis, got a region "
                  "for which sampling_ratio = ",
                  call.sampling_ratio, " requires more");
    }
  }
}

template <typename T>
void RunAs(const RoiAlignArguments& call, const RoiAlignBound& bound) {
  CheckRegions<Accumulate<T>>(call, bound.problem);
  if (bound.out.numel() == 0) return;
  RunWithWorkspace([&](int threads) { return RoiAlignCpuWorkspaceBytes<T>(bound.problem, threads); },
                   [&](const Parallel& parallel, std::byte* workspace) {
                     RunRoiAlignCpu<T>(bound.problem, BestCpuIsa(), parallel, workspace);
                   });
}

at::Tensor Run(const RoiAlignArguments& call) {
  const RoiAlignBound bound = BindRoiAlign(call);
  const at::Tensor& first = call.levels[0];
  CheckDtype(call.op, call.map_name, first, {at::kFloat, at::kBFloat16, at::kDouble});
  for (size_t l = 0; l < call.levels.size(); ++l) CheckValidExtents(call.op, call.ValidOf(l), call.levels[l]);
  switch (first.scalar_type()) {
    case at::kFloat:
      RunAs<float>(call, bound);
      break;
    case at::kDouble:
      RunAs<double>(call, bound);
      break;
    default:
      RunAs<BFloat16>(call, bound);
  }
  return bound.out;
}

at::Tensor RoiAlignCpu(const at::Tensor& features, const at::Tensor& rois, double spatial_scale,
                       int64_t pooled_height, int64_t pooled_width, int64_t sampling_ratio, bool aligned,
                       const OptionalTensor& valid) {
  return Run(RoiAlignCall(features, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned,
                          valid));
}

at::Tensor RoiAlignPyramidCpu(at::TensorList levels, const at::Tensor& boxes,
                              at::ArrayRef<double> spatial_scales, int64_t pooled_height,
                              int64_t pooled_width, int64_t sampling_ratio, bool aligned,
                              int64_t canonical_scale, int64_t canonical_level, const OptionalTensor& valid) {
  return Run(RoiAlignPyramidCall(levels, boxes, spatial_scales, pooled_height, pooled_width, sampling_ratio,
                                 aligned, canonical_scale, canonical_level, valid));
}

at::Tensor RoiAlign3dCpu(const at::Tensor& features, const at::Tensor& rois, double temporal_scale,
                         int64_t pooled_length, int64_t pooled_height, int64_t pooled_width,
                         int64_t sampling_ratio, bool aligned, const OptionalTensor& valid) {
  return Run(RoiAlign3dCall(features, rois, temporal_scale, pooled_length, pooled_height, pooled_width,
                            sampling_ratio, aligned, valid));
}

}  // namespace

TORCH_LIBRARY_IMPL(saccade, CPU, m) {
  m.impl("roi_align", RoiAlignCpu);
  m.impl("roi_align_pyramid", RoiAlignPyramidCpu);
  m.impl("roi_align_3d", RoiAlign3dCpu);
}

}  // namespace saccade::kernels
