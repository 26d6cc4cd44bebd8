#include "kernels/expatt/expatt.cuh"
#include "kernels/expatt/expatt_cuda.h"

namespace saccade::kernels {

int64_t ExpattCudaWorkspaceFloats(const ExpattProblem& problem) {
  return ExpattCudaFits(problem) ? ExpattCuda(problem, nullptr).FloatsOfWorkspace() : -1;
}

const char* LaunchExpattCuda(const ExpattProblem& problem, float* workspace, void* stream) {
  const StreamLaunch launch{static_cast<cudaStream_t>(stream)};
  return LaunchAs(problem.dtype,
                  [&](auto zero) { RunExpattCuda<decltype(zero)>(problem, workspace, launch); });
}

}  // namespace saccade::kernels
