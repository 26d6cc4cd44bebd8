#include "kernels/kao/kao.cuh"

#include "kernels/kao/kao_cuda.h"

namespace saccade::kernels {

int64_t KaoCudaWorkspaceFloats(const KaoProblem& problem) {
  return KaoCudaFits(problem) ? KaoCuda(problem, nullptr).FloatsOfWorkspace() : -1;
}

const char* LaunchKaoCuda(const KaoProblem& problem, float* workspace, void* stream) {
  const StreamLaunch launch{static_cast<cudaStream_t>(stream)};
  return LaunchAs(problem.dtype, [&](auto zero) { RunKaoCuda<decltype(zero)>(problem, workspace, launch); });
}

}  // namespace saccade::kernels
