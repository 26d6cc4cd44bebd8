// Turns the result of launching kernels into an exception. Part of the plugin: includes CUDA's headers.
#pragma once

#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace saccade::kernels {

// `error` is the result of a Launch...Cuda(): null, or a message. Throws c10::AcceleratorError with CUDA's
// code if LaunchError() found that CUDA failed, in a launch or before: by the code callers tell a lost GPU
// from a pass that failed. Throws c10::Error if the launch was refused for another reason.
inline void CheckLaunch(const char* op, const char* error) {
  if (error == nullptr) return;
  const cudaError_t code = cudaGetLastError();
  TORCH_CHECK(code != cudaSuccess, op, ": ", error);
  throw c10::AcceleratorError({__func__, __FILE__, static_cast<uint32_t>(__LINE__)},
                              static_cast<int32_t>(code), c10::str(op, ": CUDA error: ", error));
}

}  // namespace saccade::kernels
