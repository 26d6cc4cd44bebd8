#include "kernels/gsa/gsa.cuh"
#include "kernels/gsa/gsa_cuda.h"

namespace saccade::kernels {

int64_t GsaCudaWorkspaceFloats(const GsaProblem& problem) {
  return GsaCudaFits(problem) ? GsaCuda(problem, nullptr).FloatsOfWorkspace() : -1;
}

const char* LaunchGsaCuda(const GsaProblem& problem, float* workspace, void* stream) {
  const StreamLaunch launch{static_cast<cudaStream_t>(stream)};
  switch (problem.dtype) {
    case Dtype::kFloat16:
      RunGsaCuda<DeviceHalf>(problem, workspace, launch);
      break;
    case Dtype::kBFloat16:
      RunGsaCuda<DeviceBFloat16>(problem, workspace, launch);
      break;
    default:
      RunGsaCuda<float>(problem, workspace, launch);
  }
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

}  // namespace saccade::kernels
