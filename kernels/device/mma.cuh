// One warp's tensor-core product, sum += A B, where A is 16 x 16, B is 16 x 8 and sums are float32; from
// sm_80 on. With g = lane / 4 and t = lane % 4, a lane holds these fragments, two 16-bit elements per word:
//   a[0..3]   A[g][2t], A[g + 8][2t], A[g][2t + 8], A[g + 8][2t + 8], each with its right neighbour
//   b[0..1]   B[2t][g], B[2t + 8][g], each with the one below
//   sum[0..3] [g][2t], [g][2t + 1], [g + 8][2t], [g + 8][2t + 1]
#pragma once

#include "kernels/common/device.h"

namespace saccade::kernels {

#if defined(__CUDACC__)
using Pair = uint32_t;
#else
typedef uint32_t __attribute__((may_alias)) Pair;
#endif

// Two neighbouring elements, aligned to 4 bytes.
template <typename E>
__device__ inline uint32_t LoadPair(const E* from) {
  return *reinterpret_cast<const Pair*>(from);
}
template <typename E>
__device__ inline void StorePair(uint32_t pair, E* to) {
  *reinterpret_cast<Pair*>(to) = pair;
}

#if defined(__CUDACC__)

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
inline constexpr bool kHasMma = true;
__device__ inline void Mma(float (&sum)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], DeviceHalf) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ inline void Mma(float (&sum)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], DeviceBFloat16) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#else
inline constexpr bool kHasMma = false;
#endif

#else

inline constexpr bool kHasMma = true;

// Gathers the fragments of the whole warp in every lane, which then computes its own four sums.
template <typename E>
inline void Mma(float (&sum)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], E) {
  struct Fragments {
    E a[4][2];
    E b[2][2];
  };
  Fragments mine, warp[kWarp];
  __builtin_memcpy(mine.a, a, sizeof(mine.a));
  __builtin_memcpy(mine.b, b, sizeof(mine.b));
  emulator::Gather(&mine, sizeof(mine), warp);
  const int g = emulator::Lane() / 4;
  const int t = emulator::Lane() % 4;
  for (int i = 0; i < 4; ++i) {
    const int column = 2 * t + i % 2;
    for (int k = 0; k < 16; ++k) {
      const int holder = k % 8 / 2;
      sum[i] += ToFloat(warp[g * 4 + holder].a[i / 2 + k / 8 * 2][k % 2]) *
                ToFloat(warp[column * 4 + holder].b[k / 8][k % 2]);
    }
  }
}

#endif

}  // namespace saccade::kernels
