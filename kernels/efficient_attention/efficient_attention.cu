#include "kernels/efficient_attention/efficient_attention.cuh"

#include "kernels/efficient_attention/efficient_attention_cuda.h"
#include "kernels/efficient_attention/efficient_attention_tiled.cuh"

namespace saccade::kernels {
namespace {

// True if the tiled kernels can compute the problem on the current device.
bool UseTiles(const EfficientAttentionProblem& problem) {
  if (!EaTiledFits(problem)) return false;
  int device = 0;
  int major = 0;
  int shared = 0;
  return cudaGetDevice(&device) == cudaSuccess &&
         cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
         cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) == cudaSuccess &&
         major >= 8 &&
         static_cast<size_t>(shared) >= EaTiledSharedBytes(problem.dtype, EaTiled(problem, nullptr).widest);
}

}  // namespace

int64_t EaCudaWorkspaceFloats(const EfficientAttentionProblem& problem) {
  if (!EaCudaFits(problem)) return -1;
  return UseTiles(problem) ? EaTiled(problem, nullptr).FloatsOfWorkspace()
                           : EaCuda(problem, nullptr).FloatsOfWorkspace();
}

const char* LaunchEaCuda(const EfficientAttentionProblem& problem, float* workspace, void* stream) {
  const StreamLaunch launch{static_cast<cudaStream_t>(stream)};
  const bool tiled = UseTiles(problem);
  return LaunchAs(problem.dtype, [&](auto element) {
    using T = decltype(element);
    if (tiled) return RunEaTiled<T>(EaTiled(problem, workspace), launch);
    RunEaCuda<T>(problem, workspace, launch);
  });
}

}  // namespace saccade::kernels
