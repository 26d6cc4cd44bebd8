#include "kernels/attention/attention.cuh"

#include "kernels/attention/attention_cuda.h"
#include "kernels/attention/attention_packed.cuh"

namespace saccade::kernels {

int64_t AttentionCudaWorkspaceFloats(const AttentionProblem& problem) {
  return AttentionCudaFits(problem) ? AttentionCuda(problem, nullptr).FloatsOfWorkspace() : -1;
}

const char* LaunchAttentionCuda(const AttentionProblem& problem, float* workspace, void* stream) {
  const StreamLaunch launch{static_cast<cudaStream_t>(stream)};
  return LaunchAs(problem.dtype,
                  [&](auto element) { RunAttentionCuda<decltype(element)>(problem, workspace, launch); });
}

AttentionPackedShape AttentionPackedShapeOf(const AttentionProblem& problem) {
  AttentionPackedShape shape;
  if (PackedHeadChannels(problem) == 0 || !AttentionPacksFit(problem)) return shape;
  const AttentionCuda run(problem, nullptr);
  return {PackedHeadChannels(problem), PositionsOf(run.keys), run.floats};
}

const char* LaunchAttentionPack(const AttentionProblem& problem, const AttentionPacked& packed,
                                float* workspace, void* stream) {
  const StreamLaunch launch{static_cast<cudaStream_t>(stream)};
  return LaunchAs(problem.dtype, [&](auto element) {
    RunAttentionPack<decltype(element)>(problem, packed, workspace, launch);
  });
}

const char* LaunchAttentionUnpack(const AttentionProblem& problem, const AttentionPacked& packed,
                                  float* workspace, void* stream) {
  const StreamLaunch launch{static_cast<cudaStream_t>(stream)};
  return LaunchAs(problem.dtype, [&](auto element) {
    RunAttentionUnpack<decltype(element)>(problem, packed, workspace, launch);
  });
}

}  // namespace saccade::kernels
