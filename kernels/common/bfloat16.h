// bfloat16 as stored: the upper half of a float32. For code that must not depend on LibTorch or CUDA.
#pragma once

#include <bit>
#include <cstdint>

namespace saccade::kernels {

struct BFloat16 {
  uint16_t bits;

  BFloat16() = default;
  // Rounds to nearest even; a NaN stays a NaN.
  explicit BFloat16(float value) {
    const auto word = std::bit_cast<uint32_t>(value);
    const bool nan = (word & 0x7fffffffu) > 0x7f800000u;
    bits = static_cast<uint16_t>(nan ? (word >> 16) | 0x40u : (word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
  }
  constexpr explicit operator float() const { return std::bit_cast<float>(uint32_t{bits} << 16); }
};

// The type in which sums of T are accumulated.
template <typename T>
struct AccumulateAs {
  using Type = float;
};
template <>
struct AccumulateAs<double> {
  using Type = double;
};
template <typename T>
using Accumulate = typename AccumulateAs<T>::Type;

}  // namespace saccade::kernels
