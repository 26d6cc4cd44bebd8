#include "kernels/kao/kao.cuh"

#include "kernels/kao/kao_cuda.h"

namespace saccade::kernels {

int64_t KaoCudaWorkspaceFloats(const KaoProblem& problem) {
  return KaoCudaFits(problem) ? KaoCuda(problem, nullptr).FloatsOfWorkspace() : -1;
}

const char* LaunchKaoCuda(const KaoProblem& problem, float* workspace, void* stream) {
  const StreamLaunch launch{static_cast<cudaStream_t>(stream)};
  switch (problem.dtype) {
    case Dtype::kFloat32:
      RunKaoCuda<float>(problem, workspace, launch);
      break;
    case Dtype::kFloat16:
      RunKaoCuda<DeviceHalf>(problem, workspace, launch);
      break;
    case Dtype::kBFloat16:
      RunKaoCuda<DeviceBFloat16>(problem, workspace, launch);
      break;
    case Dtype::kFloat64:
      return "no CUDA kernels for float64; expected float32, float16 or bfloat16";
  }
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

}  // namespace saccade::kernels
