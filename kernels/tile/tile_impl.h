// Included only by tile_portable.cc, tile_avx2.cc and tile_avx512.cc, each compiled with its own flags.
#pragma once

#include "kernels/common/vec.h"
#include "kernels/tile/product_impl.h"
#include "kernels/tile/softmax_impl.h"
#include "kernels/tile/strip_impl.h"

namespace saccade::kernels::SACCADE_ISA {

template <typename A>
void ScaleColumns(A* x, int64_t rows, int64_t columns, int64_t row, const A* factor) {
  for (int64_t r = 0; r < rows; ++r) {
    A* at = x + r * row;
    for (int64_t j = 0; j < columns; j += kLanes<A>) Store(at + j, Load(at + j) * Load(factor + j));
  }
}

template <typename A>
void Affine(A* x, int64_t rows, int64_t columns, int64_t row, const A* scale, const A* shift, const A* add) {
  for (int64_t r = 0; r < rows; ++r) {
    A* at = x + r * row;
    const A factor = scale == nullptr ? A{1} : scale[r];
    const A term = shift == nullptr ? A{0} : shift[r];
    for (int64_t j = 0; j < columns; j += kLanes<A>) {
      Vec<A> y = Load(at + j) * factor + term;
      if (add != nullptr) y += Load(add + r * row + j);
      Store(at + j, y);
    }
  }
}

template <typename A>
void AddRowSums(const A* x, int64_t rows, int64_t columns, int64_t row, A* sums) {
  for (int64_t r = 0; r < rows; ++r) {
    Vec<A> sum{};
    int64_t j = 0;
    for (; j + kLanes<A> <= columns; j += kLanes<A>) sum += Load(x + r * row + j);
    if (j < columns) sum += LoadPart(x + r * row + j, columns - j);
    sums[r] += Sum<A>(sum);
  }
}

template <typename A>
void AddColumnSums(const A* x, int64_t rows, int64_t columns, int64_t row, A* sums) {
  for (int64_t j = 0; j < columns; j += kLanes<A>) {
    Vec<A> sum{};
    for (int64_t r = 0; r < rows; ++r) sum += Load(x + r * row + j);
    Store(sums + j, Load(sums + j) + sum);
  }
}

template <typename A>
inline constexpr TileCode<A> kTileCode = {
    .load = &LoadStrip<A>,
    .load_transposed = &LoadStripTransposed<A>,
    .store = &StoreStrip<A>,
    .product = &MatrixProduct<A>,
    .transpose = &Transpose<A>,
    .softmax = &Softmax<A>,
    .online_softmax = &OnlineSoftmax<A>,
    .scale_columns = &ScaleColumns<A>,
    .affine = &Affine<A>,
    .add_row_sums = &AddRowSums<A>,
    .add_column_sums = &AddColumnSums<A>,
};

}  // namespace saccade::kernels::SACCADE_ISA
