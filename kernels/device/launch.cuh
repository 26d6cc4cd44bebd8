// How a plan launches its kernels: launch(kernel, blocks, threads, run), where `run` is the kernel's only
// argument. The same plan runs on a CUDA stream and, in the tests, in the emulator.
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
};

// Calls run() with a zero of the maps' element type. Returns null, or a message if CUDA reports an error.
template <typename Run>
const char* LaunchAs(Dtype dtype, const Run& run) {
  if (dtype == Dtype::kFloat64) return "no CUDA kernels for float64; expected float32, float16 or bfloat16";
  if (dtype == Dtype::kFloat32) run(float());
  if (dtype == Dtype::kFloat16) run(DeviceHalf());
  if (dtype == Dtype::kBFloat16) run(DeviceBFloat16());
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

#else

struct EmulatedLaunch {
  uint64_t seed = 1;
  template <typename Run>
  void operator()(void (*kernel)(Run), int64_t blocks, int threads, const Run& run) const {
    if (blocks <= 0) return;
    emulator::Launch({.grid = dim3(static_cast<unsigned>(blocks)),
                      .block = dim3(static_cast<unsigned>(threads)),
                      .shared_bytes = 0,
                      .seed = seed},
                     [&] { kernel(run); });
  }
};

#endif

// Maximum number of blocks of a one-dimensional grid.
inline constexpr int64_t kMaxBlocks = 0x7fffffff;

inline int64_t Blocks(int64_t count, int64_t per_block) { return (count + per_block - 1) / per_block; }

}  // namespace saccade::kernels
