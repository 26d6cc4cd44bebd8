// One source for nvcc and for the emulator: every .cuh includes this file instead of CUDA's own headers.
//   SACCADE_SHARED(float, tile, 64);            a static shared array
//   SACCADE_DYNAMIC_SHARED(float, scores);      the dynamic one, its size given at launch
//   SACCADE_UNROLL, SACCADE_UNROLL_BY(4)        before a loop
#pragma once

#include <cstdint>

#if defined(__CUDACC__)

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define SACCADE_PRAGMA(text) _Pragma(#text)
#define SACCADE_UNROLL SACCADE_PRAGMA(unroll)
#define SACCADE_UNROLL_BY(count) SACCADE_PRAGMA(unroll count)
#define SACCADE_SHARED(T, name, count) __shared__ T name[count]
#define SACCADE_DYNAMIC_SHARED(T, name)                           \
  extern __shared__ __align__(16) unsigned char name##_dynamic[]; \
  T* const name = reinterpret_cast<T*>(name##_dynamic)

namespace saccade::kernels {
using DeviceHalf = __half;
using DeviceBFloat16 = __nv_bfloat16;

__device__ inline float ToFloat(DeviceHalf value) { return __half2float(value); }
__device__ inline float ToFloat(DeviceBFloat16 value) { return __bfloat162float(value); }
__device__ inline void FromFloat(float value, DeviceHalf* to) { *to = __float2half_rn(value); }
__device__ inline void FromFloat(float value, DeviceBFloat16* to) { *to = __float2bfloat16_rn(value); }
}  // namespace saccade::kernels

#else

#include "kernels/common/bfloat16.h"
#include "kernels/emulator/emulator.h"

// The names are CUDA's, and `T* const name` is a declaration, in which no parameter can stand in parentheses.
// NOLINTBEGIN(bugprone-reserved-identifier,bugprone-macro-parentheses)
#define __global__
#define __device__
#define __host__
#define __launch_bounds__(...)
#define __restrict__ __restrict
#define SACCADE_UNROLL
#define SACCADE_UNROLL_BY(count)
#define SACCADE_SHARED(T, name, count)  \
  static constexpr char name##_key = 0; \
  T* const name = static_cast<T*>(saccade::emulator::SharedMemory(&name##_key, (count) * sizeof(T)))
#define SACCADE_DYNAMIC_SHARED(T, name) \
  T* const name = static_cast<T*>(saccade::emulator::DynamicSharedMemory())
// NOLINTEND(bugprone-reserved-identifier,bugprone-macro-parentheses)

namespace saccade::kernels {
__extension__ typedef _Float16 DeviceHalf;
using DeviceBFloat16 = BFloat16;

inline float ToFloat(DeviceHalf value) { return static_cast<float>(value); }
inline float ToFloat(DeviceBFloat16 value) { return static_cast<float>(value); }
inline void FromFloat(float value, DeviceHalf* to) { *to = static_cast<DeviceHalf>(value); }
inline void FromFloat(float value, DeviceBFloat16* to) { *to = DeviceBFloat16(value); }
}  // namespace saccade::kernels

#endif

namespace saccade::kernels {

__device__ inline float ToFloat(float value) { return value; }
__device__ inline void FromFloat(float value, float* to) { *to = value; }

// Neighbouring elements, aligned to their size, so that they are loaded and stored at once.
template <typename T, int kCount>
struct alignas(sizeof(T) * kCount) Neighbours {
  T of[kCount];
};
template <typename T>
inline constexpr int kIn16Bytes = static_cast<int>(16 / sizeof(T));

inline constexpr int kWarp = 32;
inline constexpr uint32_t kWholeWarp = 0xffffffffu;

// Returns the sum over a warp, in every lane. All lanes add the same pairs, so all get the same bits.
__device__ inline float WarpSum(float value) {
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) value += __shfl_xor_sync(kWholeWarp, value, lanes);
  return value;
}

}  // namespace saccade::kernels
