#include <c10/util/Exception.h>
#include <torch/library.h>

#include <cmath>

#include "kernels/common/check.h"
#include "kernels/common/cpu_run.h"
#include "kernels/common/dtype_dispatch.h"
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

at::Tensor Run(const RoiAlignArguments& call) {
  const RoiAlignBound bound = BindRoiAlign(call);
  const at::Tensor& first = call.levels[0];
  CheckDtype(call.op, call.map_name, first, {at::kFloat, at::kBFloat16, at::kDouble});
  for (size_t l = 0; l < call.levels.size(); ++l) CheckValidExtents(call.op, call.ValidOf(l), call.levels[l]);
  WithStoredType(DtypeOf(first), [&]<typename T>(T /*zero*/) {
    CheckRegions<Accumulate<T>>(call, bound.problem);
    if (bound.out.numel() == 0) return;
    RunCpuCode<RoiAlignCpuWorkspaceBytes<T>, RunRoiAlignCpu<T>>(bound.problem);
  });
  return bound.out;
}

}  // namespace

TORCH_LIBRARY_IMPL(saccade, CPU, m) {
  m.impl("roi_align", RoiAlignAs::Run<Run>);
  m.impl("roi_align_pyramid", RoiAlignPyramidAs::Run<Run>);
  m.impl("roi_align_3d", RoiAlign3dAs::Run<Run>);
}

}  // namespace saccade::kernels
