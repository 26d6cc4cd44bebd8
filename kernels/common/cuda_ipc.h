// Memory that another process allocated on a GPU, opened by its CUDA IPC handle. The functions are the
// plugin's; their types need neither LibTorch's headers nor CUDA's.
#pragma once

#include <cstddef>
#include <cstdint>

namespace saccade::kernels {

// sizeof(cudaIpcMemHandle_t).
inline constexpr size_t kCudaIpcHandleBytes = 64;

struct OpenedCudaMemory {
  // What the other functions of CudaIpc take.
  void* block = nullptr;
  // The GPU that has the memory.
  int gpu = 0;
  // Number of bytes from the address that the handle stands for to the end of its allocation.
  uint64_t size = 0;
};

// What became of a call.
struct CudaIpcOutcome {
  // Null if it succeeded, and otherwise CUDA's reason, which is never freed.
  const char* why = nullptr;
  // Whether the error is one that CUDA calls sticky: this process cannot use the GPU any more.
  bool gpu_failed = false;
};

// All functions are thread-safe, throw nothing, and block for the driver or the GPU. The calling thread's
// device stays as it was. No CUDA error is left for a later call to report, except a sticky one, which all
// later calls report until the process ends.
struct CudaIpc {
  // Opens `handle`, which has kCudaIpcHandleBytes, for GPU `gpu`. The memory may be on another GPU of the
  // machine: see OpenedCudaMemory::gpu. What is opened has to be closed, also if it is opened a second time.
  CudaIpcOutcome (*open)(int gpu, const void* handle, OpenedCudaMemory* opened);
  // Frees `block`. No other function may use it at that time or later.
  void (*close)(void* block);
  // Copy `size` bytes from or to `offset` in the memory, and return when they are copied.
  CudaIpcOutcome (*read)(void* block, uint64_t offset, size_t size, void* to);
  CudaIpcOutcome (*write)(void* block, uint64_t offset, size_t size, const void* from);
};

// Null if the plugin is not loaded, or has no such functions.
const CudaIpc* LoadCudaIpc();

}  // namespace saccade::kernels
