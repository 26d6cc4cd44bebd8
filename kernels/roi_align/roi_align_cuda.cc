// The CUDA side of the binding. Part of the plugin, and registered when the plugin is opened.
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

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
              "' should have axes that sum to at most about 5000 pixels on CUDA, got ", first.sizes());
  const char* error =
      LaunchRoiAlignCuda(bound.problem, DtypeOf(first), c10::cuda::getCurrentCUDAStream().stream());
  TORCH_CHECK(error == nullptr, call.op, ": CUDA kernel launch failed: ", error);
  return bound.out;
}

at::Tensor RoiAlignOnCuda(const at::Tensor& features, const at::Tensor& rois, double spatial_scale,
                          int64_t pooled_height, int64_t pooled_width, int64_t sampling_ratio, bool aligned,
                          const OptionalTensor& valid) {
  return Run(RoiAlignCall(features, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned,
                          valid));
}

at::Tensor RoiAlignPyramidOnCuda(at::TensorList levels, const at::Tensor& boxes,
                                 at::ArrayRef<double> spatial_scales, int64_t pooled_height,
                                 int64_t pooled_width, int64_t sampling_ratio, bool aligned,
                                 int64_t canonical_scale, int64_t canonical_level,
                                 const OptionalTensor& valid) {
  return Run(RoiAlignPyramidCall(levels, boxes, spatial_scales, pooled_height, pooled_width, sampling_ratio,
                                 aligned, canonical_scale, canonical_level, valid));
}

at::Tensor RoiAlign3dOnCuda(const at::Tensor& features, const at::Tensor& rois, double temporal_scale,
                            int64_t pooled_length, int64_t pooled_height, int64_t pooled_width,
                            int64_t sampling_ratio, bool aligned, const OptionalTensor& valid) {
  return Run(RoiAlign3dCall(features, rois, temporal_scale, pooled_length, pooled_height, pooled_width,
                            sampling_ratio, aligned, valid));
}

}  // namespace

TORCH_LIBRARY_IMPL(saccade, CUDA, m) {
  m.impl("roi_align", RoiAlignOnCuda);
  m.impl("roi_align_pyramid", RoiAlignPyramidOnCuda);
  m.impl("roi_align_3d", RoiAlign3dOnCuda);
}

}  // namespace saccade::kernels
