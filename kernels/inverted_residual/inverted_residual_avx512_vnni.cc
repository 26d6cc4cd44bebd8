// The inverted residual for maps of bytes, on processors that sum products of bytes themselves: one
// instruction adds four products to each of 16 sums. Compiled without contraction of floating-point
// operations: each is rounded as oneDNN rounds it.
#include <immintrin.h>

#include "kernels/common/unroll.h"
#include "kernels/inverted_residual/inverted_residual_int8_blocks.h"

namespace saccade::kernels {
namespace SACCADE_ISA {
namespace {

constexpr int kFour = 4;  // vectors of 32 bits that make one of bytes
constexpr int64_t kLanes32 = 16;

// Counts are at least 0.
__mmask64 FirstBytes(int64_t count) {
  const auto bytes = static_cast<uint64_t>(count);
  return bytes >= 64 ? ~__mmask64{0} : (__mmask64{1} << bytes) - 1;
}
__mmask16 FirstLanes(int64_t count) {
  const auto lanes = static_cast<uint64_t>(count);
  return static_cast<__mmask16>(lanes >= kLanes32 ? 0xFFFF : (1U << lanes) - 1);
}

[[gnu::always_inline]] inline __m512i Load(const void* from) { return _mm512_loadu_si512(from); }

// Bytes of another map as numbers.
class Numbers {
 public:
  explicit Numbers(const ByteGrid& grid)
      : scale_(_mm512_set1_ps(grid.scale)), zero_(_mm512_set1_epi32(grid.zero)) {}
  [[gnu::always_inline]] __m512 AddedTo(__m512 number, __m512i bytes) const {
    return _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_sub_epi32(bytes, zero_)), scale_, number);
  }

 private:
  __m512 scale_;
  __m512i zero_;
};

// Int8Rounding in vectors.
class Rounding {
 public:
  explicit Rounding(const Int8Rounding& from)
      : in_scale_(_mm512_set1_ps(from.in_scale)),
        inverse_(_mm512_set1_ps(from.inverse)),
        zero_(_mm512_set1_ps(static_cast<float>(from.zero))),
        high_(_mm512_set1_ps(from.high)),
        low_(from.low) {}

  [[gnu::always_inline]] __m512 Number(__m512i sum, __m512 scale, __m512 bias) const {
    return _mm512_add_ps(_mm512_mul_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(sum), in_scale_), scale), bias);
  }
  // At most high; not yet at least low.
  template <bool kZero>
  [[gnu::always_inline]] __m512i Rounded(__m512 number) const {
    __m512 steps = _mm512_mul_ps(number, inverse_);
    if constexpr (kZero) steps = _mm512_add_ps(steps, zero_);
    return _mm512_cvtps_epi32(_mm512_min_ps(steps, high_));
  }
  // Four vectors in the order of a panel.
  [[gnu::always_inline]] __m512i Bytes(const __m512i (&rounded)[kFour]) const {
    const __m512i bytes = _mm512_packus_epi16(_mm512_packs_epi32(rounded[0], rounded[1]),
                                              _mm512_packs_epi32(rounded[2], rounded[3]));
    return _mm512_max_epu8(bytes, _mm512_set1_epi8(static_cast<char>(low_)));
  }
  // One vector in its own order.
  [[gnu::always_inline]] __m128i Bytes(__m512i rounded) const {
    return _mm512_cvtusepi32_epi8(_mm512_max_epi32(rounded, _mm512_set1_epi32(low_)));
  }

 private:
  __m512 in_scale_, inverse_, zero_, high_;
  int32_t low_;
};

// The channels of four rows next to each other: vectors of 32 bits in the order of a panel.
[[gnu::always_inline]] inline void Interleave(__m512i a, __m512i b, __m512i c, __m512i d,
                                              __m512i (&to)[kFour]) {
  const __m512i low_ab = _mm512_unpacklo_epi8(a, b);
  const __m512i low_cd = _mm512_unpacklo_epi8(c, d);
  const __m512i high_ab = _mm512_unpackhi_epi8(a, b);
  const __m512i high_cd = _mm512_unpackhi_epi8(c, d);
  to[0] = _mm512_unpacklo_epi16(low_ab, low_cd);
  to[1] = _mm512_unpackhi_epi16(low_ab, low_cd);
  to[2] = _mm512_unpacklo_epi16(high_ab, high_cd);
  to[3] = _mm512_unpackhi_epi16(high_ab, high_cd);
}

inline void StoreFirst(uint8_t* to, __m512i bytes, int64_t count) {
  if (count >= kInt8Unit) {
    _mm512_storeu_si512(to, bytes);
  } else {
    _mm512_mask_storeu_epi8(to, FirstBytes(count), bytes);
  }
}

inline void StoreFirst(uint8_t* to, __m128i bytes, int64_t count) {
  if (count >= kLanes32) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
  } else {
    _mm_mask_storeu_epi8(to, FirstLanes(count), bytes);
  }
}

// Rounds sums[positions][vectors], of at most 64 channels, to the bytes of the first `count` channels.
template <bool kZero, bool kAdds>
[[gnu::noinline]] void Finish(const __m512i* sums, int64_t positions, int64_t vectors, const float* scale,
                              const float* bias, const Int8Output& out, int64_t count) {
  const Rounding rounding(out.rounding);
  const Numbers added(out.added_grid);
  if (vectors == kFour) {
    __m512 scales[kFour];
    __m512 biases[kFour];
    ForEach<kFour>([&](auto v) __attribute__((always_inline)) {
      scales[v] = _mm512_loadu_ps(scale + v * kLanes32);
      biases[v] = _mm512_loadu_ps(bias + v * kLanes32);
    });
    for (int64_t p = 0; p < positions; ++p) {
      __m512i others[kFour];
      if constexpr (kAdds) {
        const __m512i none = _mm512_setzero_si512();
        Interleave(_mm512_maskz_loadu_epi8(FirstBytes(count), out.added + p * out.row), none, none, none,
                   others);
      }
      __m512i rounded[kFour];
      ForEach<kFour>([&](auto v) __attribute__((always_inline)) {
        __m512 number = rounding.Number(sums[p * kFour + v], scales[v], biases[v]);
        if constexpr (kAdds) number = added.AddedTo(number, others[v]);
        rounded[v] = rounding.Rounded<kZero>(number);
      });
      StoreFirst(out.data + p * out.row, rounding.Bytes(rounded), count);
    }
    return;
  }
  for (int64_t v = 0; v < vectors; ++v) {
    const __m512 scales = _mm512_loadu_ps(scale + v * kLanes32);
    const __m512 biases = _mm512_loadu_ps(bias + v * kLanes32);
    const int64_t left = count - v * kLanes32;
    for (int64_t p = 0; p < positions; ++p) {
      const int64_t at = p * out.row + v * kLanes32;
      __m512 number = rounding.Number(sums[p * vectors + v], scales, biases);
      if constexpr (kAdds) {
        const __m128i bytes = _mm_maskz_loadu_epi8(FirstLanes(left), out.added + at);
        number = added.AddedTo(number, _mm512_cvtepu8_epi32(bytes));
      }
      StoreFirst(out.data + at, rounding.Bytes(rounding.Rounded<kZero>(number)), left);
    }
  }
}

void Finish(const __m512i* sums, int64_t positions, int64_t vectors, const float* scale, const float* bias,
            const Int8Output& out, int64_t count) {
  const auto finish = out.added != nullptr     ? &Finish<true, true>
                      : out.rounding.zero != 0 ? &Finish<true, false>
                                               : &Finish<false, false>;
  finish(sums, positions, vectors, scale, bias, out, count);
}

// The sums of kVectors vectors of outputs at kPositions positions.
template <int kPositions, int kVectors>
[[gnu::noinline]] void ProductSums(const uint8_t* x, int64_t x_row, int64_t inputs, const int8_t* weights,
                                   __m512i* to) {
  __m512i sums[kPositions][kVectors];
  ForEach<kPositions>([&](auto p) __attribute__((always_inline)) {
    ForEach<kVectors>([&](auto v) __attribute__((always_inline)) { sums[p][v] = _mm512_setzero_si512(); });
  });
  for (int64_t k = 0; k < inputs; k += 4, weights += kVectors * kInt8Unit) {
    __m512i row[kVectors];
    ForEach<kVectors>([&](auto v) __attribute__((always_inline)) { row[v] = Load(weights + v * kInt8Unit); });
    ForEach<kPositions>([&](auto p) __attribute__((always_inline)) {
      int four;
      __builtin_memcpy(&four, x + p * x_row + k, sizeof(four));
      const __m512i factors = _mm512_set1_epi32(four);
      ForEach<kVectors>([&](auto v) __attribute__((always_inline)) {
        sums[p][v] = _mm512_dpbusd_epi32(sums[p][v], factors, row[v]);
      });
    });
  }
  ForEach<kPositions>([&](auto p) __attribute__((always_inline)) {
    ForEach<kVectors>([&](auto v) __attribute__((always_inline)) {
      _mm512_store_si512(to + p * kVectors + v, sums[p][v]);
    });
  });
}

using ProductSumsCode = void (*)(const uint8_t* x, int64_t x_row, int64_t inputs, const int8_t* weights,
                                 __m512i* to);
constexpr int kMaxPositions = 8;
// By vectors and positions.
constexpr ProductSumsCode kProductSums[kFour + 1][kMaxPositions + 1] = {
    {},
    {nullptr, ProductSums<1, 1>, ProductSums<2, 1>, ProductSums<3, 1>, ProductSums<4, 1>, ProductSums<5, 1>,
     ProductSums<6, 1>, ProductSums<7, 1>, ProductSums<8, 1>},
    {nullptr, ProductSums<1, 2>, ProductSums<2, 2>, ProductSums<3, 2>, ProductSums<4, 2>, ProductSums<5, 2>,
     ProductSums<6, 2>, ProductSums<7, 2>, ProductSums<8, 2>},
    {nullptr, ProductSums<1, 3>, ProductSums<2, 3>, ProductSums<3, 3>, ProductSums<4, 3>, ProductSums<5, 3>,
     ProductSums<6, 3>, ProductSums<7, 3>, ProductSums<8, 3>},
    {nullptr, ProductSums<1, 4>, ProductSums<2, 4>, ProductSums<3, 4>, ProductSums<4, 4>, ProductSums<5, 4>,
     ProductSums<6, 4>}};

void Product(const uint8_t* x, int64_t x_row, int64_t positions, const PackedInt8Product& weights,
             const float* bias, int64_t panel, const Int8Output& out) {
  const int64_t first = panel * kInt8Unit;
  const int64_t left = weights.outputs - first;
  const int64_t vectors = left >= kInt8Unit ? kFour : (left + kLanes32 - 1) / kLanes32;
  const int64_t count = out.whole_vectors ? vectors * kLanes32 : left;
  // Together with the weights of one step, the sums of so many positions are in registers.
  const int64_t together = vectors == kFour ? 6 : kMaxPositions;
  const int64_t blocks = (positions + together - 1) / together;
  __m512i sums[kMaxPositions * kFour];
  for (int64_t i = 0; i < blocks; ++i) {
    // Blocks of nearly the same size.
    const int64_t begin = positions * i / blocks;
    const int64_t end = positions * (i + 1) / blocks;
    kProductSums[vectors][end - begin](x + begin * x_row, x_row, weights.inputs,
                                       weights.data + first * weights.inputs, sums);
    Int8Output to = out;
    to.data += begin * out.row + first;
    if (to.added != nullptr) to.added += begin * out.row + first;
    Finish(sums, end - begin, vectors, weights.scale + first, bias + first, to, count);
  }
}

// The sums of 64 channels of kOutputs neighbouring outputs. `rows` are at the first output's inputs, `first`
// is what the sums begin with.
template <int kOutputs, int kStride>
[[gnu::noinline]] void FilterSums(const uint8_t* const rows[3], int64_t row, const int8_t* weights,
                                  const __m512i* first, __m512i* to) {
  constexpr int kColumns = (kOutputs - 1) * kStride + 3;
  __m512i sums[kOutputs][kFour];
  ForEach<kOutputs>([&](auto i) __attribute__((always_inline)) {
    ForEach<kFour>([&](auto v) __attribute__((always_inline)) { sums[i][v] = first[v]; });
  });
  ForEach<kColumns>([&](auto column) __attribute__((always_inline)) {
    __m512i inputs[kFour];
    const int64_t at = column * row;
    Interleave(Load(rows[0] + at), Load(rows[1] + at), Load(rows[2] + at), _mm512_setzero_si512(), inputs);
    ForEach<kOutputs>([&](auto i) __attribute__((always_inline)) {
      constexpr int kTap = decltype(column)::value - decltype(i)::value * kStride;
      if constexpr (kTap >= 0 && kTap < 3) {
        ForEach<kFour>([&](auto v) __attribute__((always_inline)) {
          sums[i][v] =
              _mm512_dpbusd_epi32(sums[i][v], inputs[v], Load(weights + (kTap * kFour + v) * kInt8Unit));
        });
      }
    });
  });
  ForEach<kOutputs>([&](auto i) __attribute__((always_inline)) {
    ForEach<kFour>(
        [&](auto v) __attribute__((always_inline)) { _mm512_store_si512(to + i * kFour + v, sums[i][v]); });
  });
}

using FilterSumsCode = void (*)(const uint8_t* const rows[3], int64_t row, const int8_t* weights,
                                const __m512i* first, __m512i* to);
constexpr int kMaxFiltered = 5;
// By stride and outputs.
constexpr FilterSumsCode kFilterSums[2][kMaxFiltered + 1] = {
    {nullptr, FilterSums<1, 1>, FilterSums<2, 1>, FilterSums<3, 1>, FilterSums<4, 1>, FilterSums<5, 1>},
    {nullptr, FilterSums<1, 2>, FilterSums<2, 2>, FilterSums<3, 2>, FilterSums<4, 2>, FilterSums<5, 2>}};

void Filter(const PackedInt8Filter& weights, const Int8FilterRow& of) {
  const int64_t blocks = (of.positions + kMaxFiltered - 1) / kMaxFiltered;
  __m512i sums[kMaxFiltered * kFour];
  for (int64_t c = 0; c < of.row; c += kInt8Unit) {
    __m512i first[kFour];
    ForEach<kFour>([&](auto v) __attribute__((always_inline)) {
      const __m512i offset =
          _mm512_mullo_epi32(Load(weights.sums + c + v * kLanes32), _mm512_set1_epi32(of.zero));
      first[v] = _mm512_sub_epi32(_mm512_setzero_si512(), offset);
    });
    for (int64_t i = 0; i < blocks; ++i) {
      const int64_t begin = of.positions * i / blocks;
      const int64_t count = of.positions * (i + 1) / blocks - begin;
      const int64_t at = begin * of.stride * of.row + c;
      const uint8_t* const rows[3] = {of.rows[0] + at, of.rows[1] + at, of.rows[2] + at};
      kFilterSums[of.stride - 1][count](rows, of.row, weights.data + c * 12, first, sums);
      const Int8Output to{
          .data = of.out + begin * of.out_row + c, .row = of.out_row, .rounding = of.rounding};
      Finish(sums, count, kFour, weights.scale + c, weights.bias + c, to, kInt8Unit);
    }
  }
}

// Rounds vectors of numbers, which load(i, lanes) returns, to the grid of `copy`.
template <typename LoadNumbers>
[[gnu::always_inline]] inline void Round(const Int8Copy& copy, const LoadNumbers& load) {
  const Rounding rounding({.inverse = 1 / copy.to_grid.scale, .zero = copy.to_grid.zero});
  for (int64_t p = 0; p < copy.positions; ++p) {
    for (int64_t c = 0; c < copy.channels; c += kLanes32) {
      const int64_t count = copy.channels - c;
      const __m512 numbers = load(p * copy.channels + c, FirstLanes(count));
      StoreFirst(copy.to + p * copy.to_row + c, rounding.Bytes(rounding.Rounded<true>(numbers)), count);
    }
  }
}

void RoundBytes(const uint8_t* from, const ByteGrid& grid, const Int8Copy& copy) {
  const Numbers bytes(grid);
  Round(copy, [&](int64_t i, __mmask16 lanes) __attribute__((always_inline)) {
    return bytes.AddedTo(_mm512_setzero_ps(), _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(lanes, from + i)));
  });
}

void RoundFloats(const float* from, const Int8Copy& copy) {
  Round(copy, [&](int64_t i, __mmask16 lanes)
                  __attribute__((always_inline)) { return _mm512_maskz_loadu_ps(lanes, from + i); });
}

void RoundBFloat16(const BFloat16* from, const Int8Copy& copy) {
  Round(copy, [&](int64_t i, __mmask16 lanes) __attribute__((always_inline)) {
    const __m512i words = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lanes, from + i));
    return _mm512_castsi512_ps(_mm512_slli_epi32(words, 16));
  });
}

constexpr Int8InvertedResidualCode kCode = {.product = &Product,
                                            .filter = &Filter,
                                            .round_bytes = &RoundBytes,
                                            .round_floats = &RoundFloats,
                                            .round_bfloat16 = &RoundBFloat16};

}  // namespace
}  // namespace SACCADE_ISA

const Int8InvertedResidualCode& Int8InvertedResidualAvx512VnniCode() { return SACCADE_ISA::kCode; }

}  // namespace saccade::kernels
