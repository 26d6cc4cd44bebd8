// Vectors of one instruction set, as the compiler's own vector types: the same source becomes SSE2 (or NEON),
// AVX2 or AVX-512, depending on the flags of the translation unit that includes it.
//
// Everything here is in a namespace named after the instruction set (SACCADE_ISA), and code that uses it must
// be too: if two sets shared an inline function, the linker would keep only one of them, and a processor
// without AVX-512 might execute the AVX-512 version. For the same reason, nothing from <algorithm> is used.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/common/bfloat16.h"
#if defined(__AVX512BF16__)
#include <immintrin.h>
#endif

#if defined(__AVX512BF16__)
#define SACCADE_ISA avx512_bf16
#define SACCADE_VECTOR_BYTES 64
#elif defined(__AVX512VNNI__)
#define SACCADE_ISA avx512_vnni
#define SACCADE_VECTOR_BYTES 64
#elif defined(__AVX512F__)
#define SACCADE_ISA avx512
#define SACCADE_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define SACCADE_ISA avx2
#define SACCADE_VECTOR_BYTES 32
#else
#define SACCADE_ISA portable
#define SACCADE_VECTOR_BYTES 16
#endif

namespace saccade::kernels::SACCADE_ISA {

// Defined for arithmetic types only. BFloat16 has overloads of its own below.
template <typename T, int kBytes, bool kIsNumber = std::is_arithmetic_v<T>>
struct VectorOf {};
template <typename T, int kBytes>
struct VectorOf<T, kBytes, true> {
  typedef T Type __attribute__((vector_size(kBytes)));
};
template <typename A>
using Vec = typename VectorOf<A, SACCADE_VECTOR_BYTES>::Type;
template <typename A>
inline constexpr int kLanes = SACCADE_VECTOR_BYTES / sizeof(A);

// A vector of integers as wide as A, with as many lanes: the type of a vector comparison.
template <typename A>
using Bits =
    typename VectorOf<std::conditional_t<sizeof(A) == 4, int32_t, int64_t>, SACCADE_VECTOR_BYTES>::Type;

template <typename A>
inline Vec<A> Broadcast(A value) {
  return Vec<A>{} + value;
}

template <typename A>
inline Vec<A> Load(const A* from) {
  Vec<A> v;
  __builtin_memcpy(&v, from, sizeof(v));
  return v;
}

template <typename A>
inline void Store(A* to, Vec<A> v) {
  __builtin_memcpy(to, &v, sizeof(v));
}

using Words = VectorOf<uint32_t, SACCADE_VECTOR_BYTES>::Type;
using HalfWords = VectorOf<uint16_t, SACCADE_VECTOR_BYTES / 2>::Type;

inline Vec<float> Load(const BFloat16* from) {
  HalfWords half;
  __builtin_memcpy(&half, from, sizeof(half));
  return (Vec<float>)(__builtin_convertvector(half, Words) << 16);
}

inline void Store(BFloat16* to, Vec<float> v) {
#if defined(__AVX512BF16__)
  const __m256bh half = _mm512_cvtneps_pbh(v);
  __builtin_memcpy(to, &half, sizeof(half));
#else
  const auto word = (Words)v;
  const Words rounded = (word + 0x7fffu + ((word >> 16) & 1u)) >> 16;
  const Words quiet = (word >> 16) | 0x40u;
  const auto nan = (Words)((word & 0x7fffffffu) > 0x7f800000u);
  const HalfWords half = __builtin_convertvector((rounded & ~nan) | (quiet & nan), HalfWords);
  __builtin_memcpy(to, &half, sizeof(half));
#endif
}

// Loads the first `count` lanes and sets the others to zero. Does not read past them.
template <typename T>
inline Vec<Accumulate<T>> LoadPart(const T* from, int64_t count) {
  T lanes[kLanes<Accumulate<T>>] = {};
  for (int64_t i = 0; i < count; ++i) lanes[i] = from[i];
  return Load(static_cast<const T*>(lanes));
}

// Stores the first `count` lanes. Does not write past them.
template <typename T>
inline void StorePart(T* to, Vec<Accumulate<T>> v, int64_t count) {
  T lanes[kLanes<Accumulate<T>>];
  Store(static_cast<T*>(lanes), v);
  for (int64_t i = 0; i < count; ++i) to[i] = lanes[i];
}

// Returns the sum of all lanes, added by halves: the order is fixed.
template <typename A, int kBytes = SACCADE_VECTOR_BYTES>
inline A Sum(typename VectorOf<A, kBytes>::Type v) {
  if constexpr (kBytes == 2 * sizeof(A)) {
    return v[0] + v[1];
  } else {
    using Half = typename VectorOf<A, kBytes / 2>::Type;
    Half halves[2];
    __builtin_memcpy(halves, &v, sizeof(v));
    return Sum<A, kBytes / 2>(halves[0] + halves[1]);
  }
}

}  // namespace saccade::kernels::SACCADE_ISA
