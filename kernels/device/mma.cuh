// One warp's tensor-core product, sum += A B, where A is 16 x 16, B is 16 x 8 and sums are float32; from
// sm_80 on. With g = lane / 4 and t = lane % 4, a lane holds these fragments, two 16-bit elements per word:
//   a[0..3]   A[g][2t], A[g + 8][2t], A[g][2t + 8], A[g + 8][2t + 8], each with its right neighbour
//   b[0..1]   B[2t][g], B[2t + 8][g], each with the one below
//   sum[0..3] [g][2t], [g][2t + 1], [g + 8][2t], [g + 8][2t + 1]
//
// LoadMatrices reads such fragments from shared memory: four matrices of 8 x 8 16-bit elements, of which
// lane 8 i + r names row r of matrix i, 16 bytes that are aligned to 16. to[i] is then element [g][2t] of
// matrix i and its right neighbour, or, transposed, element [2t][g] and the one below.
#pragma once

#include "kernels/common/device.h"

namespace saccade::kernels {

#if defined(__CUDACC__)
using Pair = uint32_t;
#else
typedef uint32_t __attribute__((may_alias)) Pair;
#endif

// Sixteen bytes that are loaded or stored at once, at an address that is a multiple of 16.
struct __attribute__((may_alias, aligned(16))) Vector16 {
  uint32_t words[4];
};

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

template <bool kTransposed, typename E>
__device__ inline void LoadMatrices(const E* row, uint32_t (&to)[4]) {
  const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  if constexpr (kTransposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
  }
}

// Rounds two neighbouring elements to the type of the last argument.
__device__ inline uint32_t RoundPair(float first, float second, DeviceHalf) {
  const __half2 pair = __floats2half2_rn(first, second);
  uint32_t word;
  memcpy(&word, &pair, sizeof(word));
  return word;
}
__device__ inline uint32_t RoundPair(float first, float second, DeviceBFloat16) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(first, second);
  uint32_t word;
  memcpy(&word, &pair, sizeof(word));
  return word;
}

#else

inline constexpr bool kHasMma = true;

// Gathers the fragments of the whole warp in every lane, which then computes its own four sums.
template <typename E>
inline void Mma(float (&sum)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], E,
                const std::source_location& where = std::source_location::current()) {
  struct Fragments {
    E a[4][2];
    E b[2][2];
  };
  Fragments mine, warp[kWarp];
  __builtin_memcpy(mine.a, a, sizeof(mine.a));
  __builtin_memcpy(mine.b, b, sizeof(mine.b));
  emulator::Gather(&mine, sizeof(mine), warp, where);
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

template <bool kTransposed, typename E>
inline void LoadMatrices(const E* row, uint32_t (&to)[4],
                         const std::source_location& where = std::source_location::current()) {
  const E* rows[kWarp];
  emulator::RequireAligned(row, 16);
  emulator::Gather(&row, sizeof(row), rows, where);
  const int g = emulator::Lane() / 4;
  const int t = emulator::Lane() % 4;
  for (int i = 0; i < 4; ++i) {
    E pair[2];
    for (int k = 0; k < 2; ++k) {
      pair[k] = kTransposed ? rows[i * 8 + 2 * t + k][g] : rows[i * 8 + g][2 * t + k];
    }
    __builtin_memcpy(&to[i], pair, sizeof(pair));
  }
}

template <typename E>
inline uint32_t RoundPair(float first, float second, E) {
  E pair[2];
  FromFloat(first, &pair[0]);
  FromFloat(second, &pair[1]);
  uint32_t word;
  __builtin_memcpy(&word, pair, sizeof(word));
  return word;
}

#endif

}  // namespace saccade::kernels
