#include "kernels/device/launch.cuh"
#include "kernels/roi_align/roi_align.cuh"
#include "kernels/roi_align/roi_align_cuda.h"

namespace saccade::kernels {

bool RoiAlignFitsCuda(const RoiAlignProblem& problem) { return RoiAlignCudaFits(problem); }

const char* LaunchRoiAlignCuda(const RoiAlignProblem& problem, Dtype dtype, void* stream) {
  const StreamLaunch launch{static_cast<cudaStream_t>(stream)};
  return LaunchAs(dtype, [&](auto zero) { RunRoiAlignCuda<decltype(zero)>(problem, launch); });
}

}  // namespace saccade::kernels
