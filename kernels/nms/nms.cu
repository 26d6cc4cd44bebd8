#include "kernels/nms/nms.cuh"
#include "kernels/nms/nms_cuda.h"

namespace saccade::kernels {

int64_t NmsCudaMaskWords(const NmsProblem& problem) {
  return problem.count <= NmsCuda::kMaxBoxes ? NmsCuda(problem, nullptr, nullptr).WordsOfMask() : -1;
}

const char* LaunchNmsCuda(const NmsProblem& problem, bool float64, const int64_t* order, uint64_t* mask,
                          void* stream) {
  const auto launch = [stream](auto* kernel, unsigned x, unsigned y, int threads, size_t shared,
                               const NmsCuda& run) {
    kernel<<<dim3(x, y), threads, shared, static_cast<cudaStream_t>(stream)>>>(run);
  };
  if (float64) {
    RunNmsCuda<double>(problem, order, mask, launch);
  } else {
    RunNmsCuda<float>(problem, order, mask, launch);
  }
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

}  // namespace saccade::kernels
