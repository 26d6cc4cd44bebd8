#include "kernels/expatt/expatt.cuh"
#include "kernels/expatt/expatt_cuda.h"
#include "kernels/expatt/expatt_map.cuh"

namespace saccade::kernels {

int64_t ExpattCudaWorkspaceFloats(const ExpattProblem& problem) {
  return ExpattCudaFits(problem) ? ExpattCuda(problem, nullptr).FloatsOfWorkspace() : -1;
}

int64_t ExpattCudaMapBytes(const ExpattProblem& problem) {
  if (!ExpattCudaFits(problem)) return 0;
  int device = 0;
  int major = 0;
  const bool tensor_cores =
      cudaGetDevice(&device) == cudaSuccess &&
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess && major >= 8;
  return tensor_cores ? ExpattMapBytes(problem) : 0;
}

const char* LaunchExpattMapCuda(const ExpattProblem& problem, void* map, void* stream) {
  const StreamLaunch launch{static_cast<cudaStream_t>(stream)};
  return LaunchAs(problem.dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (sizeof(T) == 2) RunExpattMapOnDevice<T>(problem, map, launch);
  });
}

const char* LaunchExpattCuda(const ExpattProblem& problem, float* workspace, void* stream) {
  const StreamLaunch launch{static_cast<cudaStream_t>(stream)};
  return LaunchAs(problem.dtype,
                  [&](auto zero) { RunExpattCuda<decltype(zero)>(problem, workspace, launch); });
}

}  // namespace saccade::kernels
