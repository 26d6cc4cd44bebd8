#include "kernels/device/launch.cuh"
#include "kernels/sao/sao.cuh"
#include "kernels/sao/sao_cuda.h"

namespace saccade::kernels {

int64_t SaoCudaWorkspaceFloats(const SaoProblem& problem) {
  return SaoCudaFits(problem) ? SaoCuda(problem, nullptr).FloatsOfWorkspace() : -1;
}

const char* LaunchSaoCuda(const SaoProblem& problem, Dtype dtype, float* workspace, void* stream) {
  const StreamLaunch launch{static_cast<cudaStream_t>(stream)};
  return LaunchAs(dtype, [&](auto zero) { RunSaoCuda<decltype(zero)>(problem, workspace, launch); });
}

}  // namespace saccade::kernels
