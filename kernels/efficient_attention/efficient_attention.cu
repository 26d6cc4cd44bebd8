#include "kernels/efficient_attention/efficient_attention.cuh"

#include "kernels/efficient_attention/efficient_attention_cuda.h"

namespace saccade::kernels {

int64_t EaCudaWorkspaceFloats(const EfficientAttentionProblem& problem) {
  return EaCudaFits(problem) ? EaCuda(problem, nullptr).FloatsOfWorkspace() : -1;
}

const char* LaunchEaCuda(const EfficientAttentionProblem& problem, float* workspace, void* stream) {
  const StreamLaunch launch{static_cast<cudaStream_t>(stream)};
  return LaunchAs(problem.dtype,
                  [&](auto element) { RunEaCuda<decltype(element)>(problem, workspace, launch); });
}

}  // namespace saccade::kernels
