#include "kernels/roi_align/roi_align.cuh"
#include "kernels/roi_align/roi_align_cuda.h"

namespace saccade::kernels {

bool RoiAlignFitsCuda(const RoiAlignProblem& problem) { return RoiAlignCudaFits(problem); }

const char* LaunchRoiAlignCuda(const RoiAlignProblem& problem, Dtype dtype, void* stream) {
  const auto launch = [stream](auto* kernel, unsigned x, unsigned y, int threads, size_t shared,
                               const RoiAlignCuda& run) {
    kernel<<<dim3(x, y), threads, shared, static_cast<cudaStream_t>(stream)>>>(run);
  };
  if (dtype == Dtype::kFloat16) {
    RunRoiAlignCuda<DeviceHalf>(problem, launch);
  } else if (dtype == Dtype::kBFloat16) {
    RunRoiAlignCuda<DeviceBFloat16>(problem, launch);
  } else {
    RunRoiAlignCuda<float>(problem, launch);
  }
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

}  // namespace saccade::kernels
