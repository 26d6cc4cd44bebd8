#include "kernels/sao/sao.cuh"
#include "kernels/sao/sao_cuda.h"

namespace saccade::kernels {

int64_t SaoCudaWorkspaceFloats(const SaoProblem& problem) {
  return SaoCudaFits(problem) ? SaoCuda(problem, nullptr).FloatsOfWorkspace() : -1;
}

const char* LaunchSaoCuda(const SaoProblem& problem, SaoCudaDtype dtype, float* workspace, void* stream) {
  const auto launch = [stream](auto* kernel, unsigned x, unsigned y, int threads, size_t shared,
                               const SaoCuda& run) {
    kernel<<<dim3(x, y), threads, shared, static_cast<cudaStream_t>(stream)>>>(run);
  };
  switch (dtype) {
    case SaoCudaDtype::kFloat32:
      RunSaoCuda<float>(problem, workspace, launch);
      break;
    case SaoCudaDtype::kFloat16:
      RunSaoCuda<DeviceHalf>(problem, workspace, launch);
      break;
    case SaoCudaDtype::kBFloat16:
      RunSaoCuda<DeviceBFloat16>(problem, workspace, launch);
      break;
  }
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

}  // namespace saccade::kernels
