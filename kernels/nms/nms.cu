#include "kernels/device/launch.cuh"
#include "kernels/nms/nms.cuh"
#include "kernels/nms/nms_cuda.h"

namespace saccade::kernels {

int64_t NmsCudaMaskWords(const NmsProblem& problem) {
  return problem.count <= NmsCuda::kMaxBoxes ? NmsCuda(problem, nullptr, nullptr).WordsOfMask() : -1;
}

const char* LaunchNmsCuda(const NmsProblem& problem, bool float64, const int64_t* order, uint64_t* mask,
                          void* stream) {
  const StreamLaunch launch{static_cast<cudaStream_t>(stream)};
  if (float64) {
    RunNmsCuda<double>(problem, order, mask, launch);
  } else {
    RunNmsCuda<float>(problem, order, mask, launch);
  }
  return LaunchError();
}

}  // namespace saccade::kernels
