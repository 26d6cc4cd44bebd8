#include "kernels/attention/attention.cuh"

#include "kernels/attention/attention_cuda.h"

namespace saccade::kernels {

int64_t AttentionCudaWorkspaceFloats(const AttentionProblem& problem) {
  return AttentionCudaFits(problem) ? AttentionCuda(problem, nullptr).FloatsOfWorkspace() : -1;
}

const char* LaunchAttentionCuda(const AttentionProblem& problem, float* workspace, void* stream) {
  const StreamLaunch launch{static_cast<cudaStream_t>(stream)};
  return LaunchAs(problem.dtype,
                  [&](auto element) { RunAttentionCuda<decltype(element)>(problem, workspace, launch); });
}

}  // namespace saccade::kernels
