#include "kernels/expatt/expatt.cuh"
#include "kernels/expatt/expatt_cuda.h"

namespace saccade::kernels {

int64_t ExpattCudaWorkspaceFloats(const ExpattProblem& problem) {
  return ExpattCudaFits(problem) ? ExpattCuda(problem, nullptr).FloatsOfWorkspace() : -1;
}

const char* LaunchExpattCuda(const ExpattProblem& problem, float* workspace, void* stream) {
  const StreamLaunch launch{static_cast<cudaStream_t>(stream)};
  switch (problem.dtype) {
    case Dtype::kFloat16:
      RunExpattCuda<DeviceHalf>(problem, workspace, launch);
      break;
    case Dtype::kBFloat16:
      RunExpattCuda<DeviceBFloat16>(problem, workspace, launch);
      break;
    default:
      RunExpattCuda<float>(problem, workspace, launch);
  }
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

}  // namespace saccade::kernels
