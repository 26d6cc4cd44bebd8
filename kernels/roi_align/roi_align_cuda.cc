// The CUDA side of the binding. Part of the plugin, and registered when the plugin is opened.
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "kernels/common/cuda_error.h"
#include "kernels/roi_align/roi_align_binding.h"
#include "kernels/roi_align/roi_align_cuda.h"

namespace saccade::kernels {
namespace {

at::Tensor Run(const RoiAlignArguments& call) {
  CheckRoiAlign(call);
  const at::Tensor& first = call.levels[0];
  const c10::cuda::CUDAGuard device(first.device());
  // float64 has no kernel, because it is only for checking; it uses the reference.
  if (first.scalar_type() == at::kDouble) return RoiAlignReference(call);
  const RoiAlignBound bound = BindRoiAlign(call);
  if (bound.out.numel() == 0) return bound.out;
  TORCH_CHECK(RoiAlignFitsCuda(bound.problem), call.op, ": argument '", call.map_name,
              "' should have axes that sum to at most about 5000 pixels on CUDA, and a region at most "
              "4194304 bins, got "
              "a map of ",
              first.sizes());
  const char* error =
      LaunchRoiAlignCuda(bound.problem, DtypeOf(first), c10::cuda::getCurrentCUDAStream().stream());
  CheckLaunch(call.op, error);
  return bound.out;
}

}  // namespace

TORCH_LIBRARY_IMPL(saccade, CUDA, m) {
  m.impl("roi_align", RoiAlignAs::Run<Run>);
  m.impl("roi_align_pyramid", RoiAlignPyramidAs::Run<Run>);
  m.impl("roi_align_3d", RoiAlign3dAs::Run<Run>);
}

}  // namespace saccade::kernels
