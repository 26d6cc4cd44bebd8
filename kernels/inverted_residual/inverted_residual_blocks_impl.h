// Included only by inverted_residual_portable.cc and its siblings, each compiled with its own flags.
#pragma once

#include "kernels/common/unroll.h"
#include "kernels/common/vec.h"
#if SACCADE_VECTOR_BYTES == 64
#include <immintrin.h>
#endif
#include "kernels/inverted_residual/inverted_residual_blocks.h"

namespace saccade::kernels::SACCADE_ISA {

// Sums in registers: positions times vectors of outputs. Maps of networks have sides that are often multiples
// of seven. AVX-512 has 32 registers, the other sets 16.
inline constexpr int kMaxPositions = SACCADE_VECTOR_BYTES == 64 ? 7 : SACCADE_VECTOR_BYTES == 32 ? 6 : 4;
inline constexpr int kMaxVectors = SACCADE_VECTOR_BYTES == 64 ? 3 : 2;
inline constexpr int64_t kVectorsPerUnit = kChannelUnit / kLanes<float>;
// Outputs that are filtered at a time: neighbours read the same inputs.
inline constexpr int kFilteredAtOnce = SACCADE_VECTOR_BYTES == 64 ? 4 : 2;

// A NaN stays a NaN.
inline Vec<float> From0To6(Vec<float> x) {
#if SACCADE_VECTOR_BYTES == 64
  // The compiler would compare and blend instead. (GCC 12 warns of its own header's undefined registers in
  // the forms without a mask.)
  constexpr __mmask16 kAll = 0xFFFF;
  return _mm512_maskz_max_ps(kAll, _mm512_setzero_ps(), _mm512_maskz_min_ps(kAll, _mm512_set1_ps(6.0F), x));
#else
  const Vec<float> six = Broadcast(6.0F);
  x = x > six ? six : x;
  return x < Vec<float>{} ? Vec<float>{} : x;
#endif
}

// The term of each of a product's sums that one step adds: one input, or a pair of inputs in bfloat16.
template <typename T>
struct Step {
  static constexpr int64_t kInputs = 1;
  using Weights = Vec<float>;
  static Weights LoadWeights(const T* from) { return Load(from); }
  // The inputs of one position. (A Broadcast() would add them to zero first.)
  static T Spread(const T* x) { return *x; }
  static Vec<float> Add(Vec<float> sum, T x, Weights weights) { return sum + weights * x; }
};

template <typename T>
inline void StoreResult(T* to, Vec<float> value, int64_t count) {
  if (count >= kLanes<float>) {
    Store(to, value);
  } else {
    StorePart(to, value, count);
  }
}

template <typename T>
inline Vec<float> LoadAdded(const T* from, int64_t count) {
  return count >= kLanes<float> ? Load(from) : Vec<float>(LoadPart(from, count));
}

// The outputs of kPositions positions and kVectors vectors. `weights` points to the vectors' column of a
// panel whose rows are `panel` entries; `outputs` is how many of the vectors' outputs get written.
template <int kPositions, int kVectors, typename T, typename O>
inline void ProductBlock(const T* x, int64_t x_row, int64_t inputs, const T* weights, int64_t panel,
                         const float* bias, int64_t outputs, const ProductOutput<O>& out, int64_t position,
                         int64_t at) {
  using S = Step<T>;
  Vec<float> sums[kPositions][kVectors];
  ForEach<kVectors>([&](auto v) __attribute__((always_inline)) {
    const Vec<float> first = Load(bias + v * kLanes<float>);
    ForEach<kPositions>([&](auto p) __attribute__((always_inline)) { sums[p][v] = first; });
  });
  for (int64_t k = 0; k < inputs; k += S::kInputs) {
    typename S::Weights row[kVectors];
    ForEach<kVectors>([&](auto v) __attribute__((always_inline)) {
      row[v] = S::LoadWeights(weights + (k / S::kInputs * panel + v * kLanes<float>)*S::kInputs);
    });
    ForEach<kPositions>([&](auto p) __attribute__((always_inline)) {
      const auto factor = S::Spread(x + p * x_row + k);
      ForEach<kVectors>(
          [&](auto v) __attribute__((always_inline)) { sums[p][v] = S::Add(sums[p][v], factor, row[v]); });
    });
  }
  const int64_t start = position * out.row + at;
  ForEach<kVectors>([&](auto v) __attribute__((always_inline)) {
    const int64_t count = outputs - v * kLanes<float>;
    if (count <= 0) return;
    ForEach<kPositions>([&](auto p) __attribute__((always_inline)) {
      const int64_t to = start + p * out.row + v * kLanes<float>;
      Vec<float> sum = sums[p][v];
      if (out.added != nullptr) sum += LoadAdded(out.added + to, count);
      StoreResult(out.data + to, out.relu6 ? From0To6(sum) : sum, count);
    });
  });
}

template <int kPositions, int kVectors, typename T, typename O>
inline void LastPositions(int64_t positions, const T* x, int64_t x_row, int64_t inputs, const T* weights,
                          int64_t panel, const float* bias, int64_t outputs, const ProductOutput<O>& out,
                          int64_t position, int64_t at) {
  if constexpr (kPositions > 0) {
    if (positions == kPositions) {
      ProductBlock<kPositions, kVectors>(x, x_row, inputs, weights, panel, bias, outputs, out, position, at);
    } else {
      LastPositions<kPositions - 1, kVectors>(positions, x, x_row, inputs, weights, panel, bias, outputs, out,
                                              position, at);
    }
  }
}

template <int kVectors, typename T, typename O>
void ProductColumns(const T* x, int64_t x_row, int64_t positions, int64_t inputs, const T* weights,
                    int64_t panel, const float* bias, int64_t outputs, const ProductOutput<O>& out,
                    int64_t at) {
  int64_t p = 0;
  for (; p + kMaxPositions <= positions; p += kMaxPositions) {
    ProductBlock<kMaxPositions, kVectors>(x + p * x_row, x_row, inputs, weights, panel, bias, outputs, out, p,
                                          at);
  }
  LastPositions<kMaxPositions - 1, kVectors>(positions - p, x + p * x_row, x_row, inputs, weights, panel,
                                             bias, outputs, out, p, at);
}

// Computes min(vectors, kVectors) vectors of outputs.
template <int kVectors, typename T, typename O>
void ProductVectors(int64_t vectors, const T* x, int64_t x_row, int64_t positions, int64_t inputs,
                    const T* weights, int64_t panel, const float* bias, int64_t outputs,
                    const ProductOutput<O>& out, int64_t at) {
  if constexpr (kVectors > 0) {
    if (vectors >= kVectors) {
      ProductColumns<kVectors>(x, x_row, positions, inputs, weights, panel, bias, outputs, out, at);
    } else {
      ProductVectors<kVectors - 1>(vectors, x, x_row, positions, inputs, weights, panel, bias, outputs, out,
                                   at);
    }
  }
}

template <typename T, typename O>
void PanelProduct(const T* x, int64_t x_row, int64_t positions, const PackedProduct& weights, int64_t first,
                  int64_t units, bool whole_units, const ProductOutput<O>& out) {
  const int64_t begin = first * kChannelUnit;
  const int64_t panel = units * kChannelUnit;
  const int64_t outputs = whole_units ? begin + panel : weights.outputs;
  const T* data = static_cast<const T*>(weights.data) + begin * weights.inputs;
  const int64_t vectors = units * kVectorsPerUnit;
  for (int64_t v = 0; v < vectors; v += kMaxVectors) {
    const int64_t at = v * kLanes<float>;
    ProductVectors<kMaxVectors>(vectors - v, x, x_row, positions, weights.inputs,
                                data + at * Step<T>::kInputs, panel, weights.bias + begin + at,
                                outputs - begin - at, out, begin + at);
  }
}

// A vector of channels of kOutputs neighbouring outputs.
template <int kOutputs, int kStride, typename T>
inline void FilterBlock(const float* const rows[3], int64_t row, const Vec<float> (&weights)[9],
                        Vec<float> bias, T* out, int64_t out_row) {
  Vec<float> sums[kOutputs];
  for (int i = 0; i < kOutputs; ++i) sums[i] = bias;
  for (int y = 0; y < 3; ++y) {
    constexpr int kInputs = (kOutputs - 1) * kStride + 3;
    Vec<float> x[kInputs];
    for (int i = 0; i < kInputs; ++i) x[i] = Load(rows[y] + i * row);
    for (int i = 0; i < kOutputs; ++i) {
      for (int j = 0; j < 3; ++j) sums[i] += x[i * kStride + j] * weights[y * 3 + j];
    }
  }
  for (int i = 0; i < kOutputs; ++i) Store(out + i * out_row, From0To6(sums[i]));
}

template <int kStride, typename T>
void FilterRow(const float* const rows[3], int64_t row, const float* weights, const float* bias,
               int64_t positions, T* out, int64_t out_row) {
  for (int64_t c = 0; c < row; c += kLanes<float>) {
    Vec<float> nine[9];
    for (int i = 0; i < 9; ++i) nine[i] = Load(weights + i * row + c);
    const Vec<float> first = Load(bias + c);
    int64_t p = 0;
    const auto from = [&](int y) { return rows[y] + p * kStride * row + c; };
    for (; p + kFilteredAtOnce <= positions; p += kFilteredAtOnce) {
      const float* const at[3] = {from(0), from(1), from(2)};
      FilterBlock<kFilteredAtOnce, kStride>(at, row, nine, first, out + p * out_row + c, out_row);
    }
    for (; p < positions; ++p) {
      const float* const at[3] = {from(0), from(1), from(2)};
      FilterBlock<1, kStride>(at, row, nine, first, out + p * out_row + c, out_row);
    }
  }
}

template <typename T>
void Filter(const float* const rows[3], int64_t row, const float* weights, const float* bias, int64_t stride,
            int64_t positions, T* out, int64_t out_row) {
  if (stride == 1) {
    FilterRow<1>(rows, row, weights, bias, positions, out, out_row);
  } else {
    FilterRow<2>(rows, row, weights, bias, positions, out, out_row);
  }
}

template <typename T>
inline constexpr InvertedResidualCode<T> kInvertedResidualCode = {
    .expand = &PanelProduct<T, float>, .filter = &Filter<T>, .project = &PanelProduct<T, T>};

}  // namespace saccade::kernels::SACCADE_ISA
