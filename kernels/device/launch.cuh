// How a plan launches its kernels: launch(kernel, blocks, threads, run), where `run` is the kernel's only
// argument; or launch(kernel, grid.x, grid.y, threads, dynamic shared bytes, run). The same plan runs on a
// CUDA stream and, in the tests, in the emulator.
#pragma once

#include "kernels/common/device.h"
#include "kernels/common/feature_map.h"

namespace saccade::kernels {

#if defined(__CUDACC__)

struct StreamLaunch {
  cudaStream_t stream;
  template <typename Run>
  void operator()(void (*kernel)(Run), int64_t blocks, int threads, const Run& run) const {
    if (blocks > 0) kernel<<<static_cast<unsigned>(blocks), threads, 0, stream>>>(run);
  }
  template <typename Run>
  void operator()(void (*kernel)(Run), unsigned x, unsigned y, int threads, size_t shared,
                  const Run& run) const {
    // More than 48 KB have to be asked for. An error shows in LaunchError() after the launch.
    if (shared > 48 * 1024) {
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared));
    }
    kernel<<<dim3(x, y), threads, shared, stream>>>(run);
  }
};

// Returns null, or CUDA's message if a launch failed. Leaves the error in place for CheckLaunch(), which
// takes its code.
inline const char* LaunchError() {
  const cudaError_t error = cudaPeekAtLastError();
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

// Calls run() with a zero of the maps' element type. Returns null, or a message if CUDA reports an error.
template <typename Run>
const char* LaunchAs(Dtype dtype, const Run& run) {
  if (dtype == Dtype::kFloat64) return "no CUDA kernels for float64; expected float32, float16 or bfloat16";
  if (dtype == Dtype::kFloat32) run(float());
  if (dtype == Dtype::kFloat16) run(DeviceHalf());
  if (dtype == Dtype::kBFloat16) run(DeviceBFloat16());
  return LaunchError();
}

#else

struct EmulatedLaunch {
  uint64_t seed = 1;
  template <typename Run>
  void operator()(void (*kernel)(Run), int64_t blocks, int threads, const Run& run) const {
    if (blocks > 0) (*this)(kernel, static_cast<unsigned>(blocks), 1, threads, 0, run);
  }
  template <typename Run>
  void operator()(void (*kernel)(Run), unsigned x, unsigned y, int threads, size_t shared,
                  const Run& run) const {
    emulator::Launch({.grid = dim3(x, y),
                      .block = dim3(static_cast<unsigned>(threads)),
                      .shared_bytes = shared,
                      .seed = seed},
                     [&] { kernel(run); });
  }
};

#endif

// Maximum number of blocks of a one-dimensional grid.
inline constexpr int64_t kMaxBlocks = 0x7fffffff;

inline int64_t Blocks(int64_t count, int64_t per_block) { return (count + per_block - 1) / per_block; }

}  // namespace saccade::kernels
