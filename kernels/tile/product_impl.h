// Matrix products accumulated in registers; part of tile_impl.h.
#pragma once

#include "kernels/common/vec.h"
#include "kernels/tile/tile.h"

namespace saccade::kernels::SACCADE_ISA {

// Size of the block of sums kept in registers: rows of c times vectors of columns. AVX-512 has 32 registers,
// and a tile's 64 columns are four vectors; the other sets have 16 registers.
inline constexpr int kProductVectors = SACCADE_VECTOR_BYTES == 64 ? 4 : 2;
inline constexpr int kProductRows = SACCADE_VECTOR_BYTES == 16 ? 4 : 6;

// Maximum length of one sum. Longer sums are split to limit rounding error (see RegisterProduct) and to keep
// the rows of b in cache.
inline constexpr int64_t kProductDepth = 256;

// Computes kRows rows of c for kVectors vectors of columns. kAdjacentRows: the entries of each column of a
// are adjacent and `stride` is the distance between columns; otherwise those of each row are, and `stride` is
// between rows.
template <int kRows, int kVectors, bool kAdjacentRows, typename A>
inline void RegisterProduct(int64_t k, const A* a, int64_t stride, const A* b, int64_t b_row, A* c,
                            int64_t c_row, bool accumulate) {
  Vec<A> sums[kRows][kVectors] = {};
  for (int64_t i = 0; i < k; ++i) {
    Vec<A> values[kVectors];
    for (int v = 0; v < kVectors; ++v) values[v] = Load(b + i * b_row + v * kLanes<A>);
    for (int r = 0; r < kRows; ++r) {
      const A factor = kAdjacentRows ? a[i * stride + r] : a[r * stride + i];
      for (int v = 0; v < kVectors; ++v) sums[r][v] += values[v] * factor;
    }
  }
  // The previous value of c is added last. This adds short sums to a long one, so the rounding error grows
  // with the number of calls instead of the number of terms.
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      A* to = c + r * c_row + v * kLanes<A>;
      Store(to, accumulate ? Load(to) + sums[r][v] : sums[r][v]);
    }
  }
}

// Computes the last `rows` <= kRows rows with code unrolled for their exact number.
template <int kRows, int kVectors, bool kAdjacentRows, typename A>
inline void LastRows(int64_t rows, int64_t k, const A* a, int64_t stride, const A* b, int64_t b_row, A* c,
                     int64_t c_row, bool accumulate) {
  if constexpr (kRows > 0) {
    if (rows == kRows) {
      RegisterProduct<kRows, kVectors, kAdjacentRows>(k, a, stride, b, b_row, c, c_row, accumulate);
    } else {
      LastRows<kRows - 1, kVectors, kAdjacentRows>(rows, k, a, stride, b, b_row, c, c_row, accumulate);
    }
  }
}

template <int kVectors, bool kAdjacentRows, typename A>
inline void ColumnsProduct(int64_t m, int64_t k, const A* a, int64_t stride, const A* b, int64_t b_row, A* c,
                           int64_t c_row, bool accumulate) {
  const int64_t step = kAdjacentRows ? 1 : stride;
  int64_t i = 0;
  for (; i + kProductRows <= m; i += kProductRows) {
    RegisterProduct<kProductRows, kVectors, kAdjacentRows>(k, a + i * step, stride, b, b_row, c + i * c_row,
                                                           c_row, accumulate);
  }
  LastRows<kProductRows - 1, kVectors, kAdjacentRows>(m - i, k, a + i * step, stride, b, b_row, c + i * c_row,
                                                      c_row, accumulate);
}

// Computes min(vectors, kVectors) vectors of columns.
template <int kVectors, bool kAdjacentRows, typename A>
inline void VectorsProduct(int64_t vectors, int64_t m, int64_t k, const A* a, int64_t stride, const A* b,
                           int64_t b_row, A* c, int64_t c_row, bool accumulate) {
  if constexpr (kVectors > 0) {
    if (vectors >= kVectors) {
      ColumnsProduct<kVectors, kAdjacentRows>(m, k, a, stride, b, b_row, c, c_row, accumulate);
    } else {
      VectorsProduct<kVectors - 1, kAdjacentRows>(vectors, m, k, a, stride, b, b_row, c, c_row, accumulate);
    }
  }
}

template <bool kAdjacentRows, typename A>
void ProductOf(int64_t m, int64_t n, int64_t k, const A* a, int64_t stride, const A* b, int64_t b_row, A* c,
               int64_t c_row, bool accumulate) {
  constexpr int64_t kWide = kProductVectors * kLanes<A>;
  for (int64_t from = 0; from < k || from == 0; from += kProductDepth) {
    const int64_t depth = k - from < kProductDepth ? k - from : kProductDepth;
    const bool add = accumulate || from > 0;
    const A* a_at = a + from * (kAdjacentRows ? stride : 1);
    const A* b_at = b + from * b_row;
    for (int64_t j = 0; j < n; j += kWide) {
      const int64_t vectors = (n - j + kLanes<A> - 1) / kLanes<A>;
      VectorsProduct<kProductVectors, kAdjacentRows>(vectors, m, depth, a_at, stride, b_at + j, b_row, c + j,
                                                     c_row, add);
    }
  }
}

template <typename A>
void MatrixProduct(int64_t m, int64_t n, int64_t k, const MatrixView<A>& a, const A* b, int64_t b_row, A* c,
                   int64_t c_row, bool accumulate) {
  if (a.row == 1) {
    ProductOf<true>(m, n, k, a.data, a.column, b, b_row, c, c_row, accumulate);
  } else if (a.column == 1) {
    ProductOf<false>(m, n, k, a.data, a.row, b, b_row, c, c_row, accumulate);
  } else {
    __builtin_trap();  // Programming error: tile.h requires that one stride is 1.
  }
}

}  // namespace saccade::kernels::SACCADE_ISA
