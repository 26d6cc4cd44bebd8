#include "kernels/gsa/gsa.cuh"
#include "kernels/gsa/gsa_cuda.h"

namespace saccade::kernels {

int64_t GsaCudaWorkspaceFloats(const GsaProblem& problem) {
  return GsaCudaFits(problem) ? GsaCuda(problem, nullptr).FloatsOfWorkspace() : -1;
}

const char* LaunchGsaCuda(const GsaProblem& problem, float* workspace, void* stream) {
  const StreamLaunch launch{static_cast<cudaStream_t>(stream)};
  return LaunchAs(problem.dtype, [&](auto zero) { RunGsaCuda<decltype(zero)>(problem, workspace, launch); });
}

}  // namespace saccade::kernels
