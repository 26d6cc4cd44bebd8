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

// Rows `stride` elements apart. The operand a of the products below is given by columns instead if
// kAdjacentRows, which means that the entries of each of its columns are adjacent.
template <typename A>
struct StridedRows {
  A* data;
  int64_t stride;
  StridedRows From(int64_t row, int64_t column) const { return {data + row * stride + column, stride}; }
};

// Returns operand a from one of its rows on.
template <bool kAdjacentRows, typename A>
inline StridedRows<A> FromRow(const StridedRows<A>& a, int64_t row) {
  return kAdjacentRows ? a.From(0, row) : a.From(row, 0);
}

// Computes kRows rows of c for kVectors vectors of columns: c = a b, or c += if `accumulate`.
template <int kRows, int kVectors, bool kAdjacentRows, typename A>
inline void RegisterProduct(int64_t k, StridedRows<const A> a, StridedRows<const A> b, StridedRows<A> c,
                            bool accumulate) {
  Vec<A> sums[kRows][kVectors] = {};
  for (int64_t i = 0; i < k; ++i) {
    Vec<A> values[kVectors];
    for (int v = 0; v < kVectors; ++v) values[v] = Load(b.data + i * b.stride + v * kLanes<A>);
    for (int r = 0; r < kRows; ++r) {
      const A factor = kAdjacentRows ? a.data[i * a.stride + r] : a.data[r * a.stride + i];
      for (int v = 0; v < kVectors; ++v) sums[r][v] += values[v] * factor;
    }
  }
  // The previous value of c is added last. This adds short sums to a long one, so the rounding error grows
  // with the number of calls instead of the number of terms.
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      A* to = c.data + r * c.stride + v * kLanes<A>;
      Store(to, accumulate ? Load(to) + sums[r][v] : sums[r][v]);
    }
  }
}

// Computes the last `rows` <= kRows rows with code unrolled for their exact number.
template <int kRows, int kVectors, bool kAdjacentRows, typename A>
inline void LastRows(int64_t rows, int64_t k, StridedRows<const A> a, StridedRows<const A> b,
                     StridedRows<A> c, bool accumulate) {
  if constexpr (kRows > 0) {
    if (rows == kRows) {
      RegisterProduct<kRows, kVectors, kAdjacentRows>(k, a, b, c, accumulate);
    } else {
      LastRows<kRows - 1, kVectors, kAdjacentRows>(rows, k, a, b, c, accumulate);
    }
  }
}

template <int kVectors, bool kAdjacentRows, typename A>
inline void ColumnsProduct(int64_t m, int64_t k, StridedRows<const A> a, StridedRows<const A> b,
                           StridedRows<A> c, bool accumulate) {
  int64_t i = 0;
  for (; i + kProductRows <= m; i += kProductRows) {
    RegisterProduct<kProductRows, kVectors, kAdjacentRows>(k, FromRow<kAdjacentRows>(a, i), b, c.From(i, 0),
                                                           accumulate);
  }
  LastRows<kProductRows - 1, kVectors, kAdjacentRows>(m - i, k, FromRow<kAdjacentRows>(a, i), b, c.From(i, 0),
                                                      accumulate);
}

// Computes min(vectors, kVectors) vectors of columns.
template <int kVectors, bool kAdjacentRows, typename A>
inline void VectorsProduct(int64_t vectors, int64_t m, int64_t k, StridedRows<const A> a,
                           StridedRows<const A> b, StridedRows<A> c, bool accumulate) {
  if constexpr (kVectors > 0) {
    if (vectors >= kVectors) {
      ColumnsProduct<kVectors, kAdjacentRows>(m, k, a, b, c, accumulate);
    } else {
      VectorsProduct<kVectors - 1, kAdjacentRows>(vectors, m, k, a, b, c, accumulate);
    }
  }
}

template <bool kAdjacentRows, typename A>
void ProductOf(int64_t m, int64_t n, int64_t k, StridedRows<const A> a, StridedRows<const A> b,
               StridedRows<A> c, bool accumulate) {
  constexpr int64_t kWide = kProductVectors * kLanes<A>;
  for (int64_t from = 0; from < k || from == 0; from += kProductDepth) {
    const int64_t depth = k - from < kProductDepth ? k - from : kProductDepth;
    const bool add = accumulate || from > 0;
    // Column `from` of a.
    const StridedRows<const A> factors = kAdjacentRows ? a.From(from, 0) : a.From(0, from);
    for (int64_t j = 0; j < n; j += kWide) {
      const int64_t vectors = (n - j + kLanes<A> - 1) / kLanes<A>;
      VectorsProduct<kProductVectors, kAdjacentRows>(vectors, m, depth, factors, b.From(from, j),
                                                     c.From(0, j), add);
    }
  }
}

template <typename A>
void MatrixProduct(int64_t m, int64_t n, int64_t k, const MatrixView<A>& a, const A* b, int64_t b_row, A* c,
                   int64_t c_row, bool accumulate) {
  const StridedRows<const A> b_rows{b, b_row};
  const StridedRows<A> c_rows{c, c_row};
  if (a.row == 1) {
    ProductOf<true>(m, n, k, StridedRows<const A>{a.data, a.column}, b_rows, c_rows, accumulate);
  } else if (a.column == 1) {
    ProductOf<false>(m, n, k, StridedRows<const A>{a.data, a.row}, b_rows, c_rows, accumulate);
  } else {
    __builtin_trap();  // Programming error: tile.h requires that one stride is 1.
  }
}

}  // namespace saccade::kernels::SACCADE_ISA
