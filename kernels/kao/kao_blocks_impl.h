// Included only by kao_portable.cc, kao_avx2.cc and kao_avx512.cc, each compiled with its own flags.
#pragma once

#include <type_traits>

#include "kernels/common/vec.h"
#include "kernels/kao/kao_blocks.h"

namespace saccade::kernels::SACCADE_ISA {

// Returns one past the last element of a block.
template <typename T>
inline T* EndOf(const KaoBlock<T>& x) {
  return x.data + (x.channels - 1) * x.channel_stride + (x.rows - 1) * x.row_stride +
         (x.columns - 1) * x.column_stride + 1;
}

// Loads at least `count` lanes that are `stride` apart. Other lanes are unspecified: a whole vector is read
// if memory before `end` allows, because reading a part is many times slower.
template <bool kAdjacent, typename T>
inline Vec<Accumulate<T>> LoadLanes(const T* from, int64_t stride, int64_t count, const T* end) {
  constexpr int64_t kVectorLanes = kLanes<Accumulate<T>>;
  if constexpr (kAdjacent) {
    return from + kVectorLanes <= end ? Load(from)
                                      : LoadPart(from, count < kVectorLanes ? count : kVectorLanes);
  } else {
    T lanes[kVectorLanes] = {};
    for (int64_t i = 0; i < count && i < kVectorLanes; ++i) lanes[i] = from[i * stride];
    return Load(static_cast<const T*>(lanes));
  }
}

// Stores at least `count` lanes contiguously, and all of them if memory before `end` allows.
template <typename T>
inline void StoreLanes(T* to, Vec<Accumulate<T>> v, int64_t count, const T* end) {
  constexpr int64_t kVectorLanes = kLanes<Accumulate<T>>;
  to + kVectorLanes <= end ? Store(to, v) : StorePart(to, v, count < kVectorLanes ? count : kVectorLanes);
}

// Returns v with all lanes from `count` on set to zero.
template <typename A>
inline Vec<A> FirstLanes(Vec<A> v, int64_t count) {
  Bits<A> index;
  for (int i = 0; i < kLanes<A>; ++i) index[i] = i;
  return (Vec<A>)((Bits<A>)v & (index < static_cast<std::remove_cvref_t<decltype(index[0])>>(count)));
}

// Long sums are split into sums of kRunLength terms, so that rounding errors grow with the number of runs
// instead of the image size.
inline constexpr int64_t kRunLength = 8;

// Number of vectors of columns that are summed in registers at once.
inline constexpr int kColumnVectors = 4;

// Sums one channel over `count` columns, which are kVectors vectors: stores the sum of each column and adds
// to the sum of each row.
template <int kVectors, bool kAdjacent, typename T, typename A = Accumulate<T>>
inline void SumColumns(const KaoBlock<const T>& x, const T* data, int64_t count, const T* end, A* columns,
                       A* rows) {
  constexpr int64_t kLast = (kVectors - 1) * kLanes<A>;
  Vec<A> sums[kVectors] = {};
  for (int64_t begin = 0; begin < x.rows; begin += kRunLength) {
    Vec<A> run[kVectors] = {};
    for (int64_t r = begin; r < x.rows && r < begin + kRunLength; ++r) {
      const T* at = data + r * x.row_stride;
      Vec<A> values[kVectors];
      for (int v = 0; v < kVectors; ++v) {
        values[v] = LoadLanes<kAdjacent>(at + v * kLanes<A> * x.column_stride, x.column_stride,
                                         count - v * kLanes<A>, end);
      }
      values[kVectors - 1] = FirstLanes<A>(values[kVectors - 1], count - kLast);
      Vec<A> across{};
      for (int v = 0; v < kVectors; ++v) {
        run[v] += values[v];
        across += values[v];
      }
      rows[r] += Sum<A>(across);
    }
    for (int v = 0; v < kVectors; ++v) sums[v] += run[v];
  }
  for (int v = 0; v + 1 < kVectors; ++v) Store(columns + v * kLanes<A>, sums[v]);
  StorePart(columns + kLast, sums[kVectors - 1], count - kLast);
}

template <bool kAdjacent, typename T, typename A = Accumulate<T>>
void AverageAlongColumns(const KaoBlock<const T>& x, A* means, int64_t row) {
  constexpr int64_t kWide = kColumnVectors * kLanes<A>;
  const T* end = EndOf(x);
  for (int64_t c = 0; c < x.channels; ++c) {
    A* columns = means + c * row;
    A* rows = columns + x.columns;
    for (int64_t r = 0; r < x.rows; ++r) rows[r] = A{0};
    for (int64_t j = 0; j < x.columns; j += kWide) {
      const T* data = x.data + c * x.channel_stride + j * x.column_stride;
      const int64_t count = x.columns - j < kWide ? x.columns - j : kWide;
      switch ((count + kLanes<A> - 1) / kLanes<A>) {
        case 1:
          SumColumns<1, kAdjacent>(x, data, count, end, columns + j, rows);
          break;
        case 2:
          SumColumns<2, kAdjacent>(x, data, count, end, columns + j, rows);
          break;
        case 3:
          SumColumns<3, kAdjacent>(x, data, count, end, columns + j, rows);
          break;
        default:
          SumColumns<kColumnVectors, kAdjacent>(x, data, count, end, columns + j, rows);
      }
    }
    for (int64_t j = 0; j < x.columns; ++j) columns[j] /= static_cast<A>(x.rows);
    for (int64_t r = 0; r < x.rows; ++r) rows[r] /= static_cast<A>(x.columns);
  }
}

// AVX-512 has 32 registers, the other sets have 16.
inline constexpr int kChannelVectors = SACCADE_VECTOR_BYTES == 64 ? 4 : 2;
inline constexpr int kRowsAtOnce = 4;

// Adds kRows rows from `first` on to the sums of each row and column, for kVectors vectors of channels. The
// rows' sums are in registers, the columns' in the L1 cache.
template <int kRows, int kVectors, typename T, typename A = Accumulate<T>>
inline void SumRows(const KaoBlock<const T>& x, int64_t first, int64_t channel, const T* end, A* means,
                    int64_t row) {
  for (int64_t begin = 0; begin < x.columns; begin += kRunLength) {
    Vec<A> across[kRows][kVectors] = {};
    for (int64_t j = begin; j < x.columns && j < begin + kRunLength; ++j) {
      const T* at = x.data + first * x.row_stride + j * x.column_stride + channel;
      for (int v = 0; v < kVectors; ++v) {
        Vec<A> down{};
        for (int r = 0; r < kRows; ++r) {
          const Vec<A> values = LoadLanes<true>(at + r * x.row_stride + v * kLanes<A>, 1,
                                                x.channels - channel - v * kLanes<A>, end);
          across[r][v] += values;
          down += values;
        }
        A* column = means + j * row + channel + v * kLanes<A>;
        Store(column, Load(column) + down);
      }
    }
    for (int r = 0; r < kRows; ++r) {
      A* of_row = means + (x.columns + first + r) * row + channel;
      for (int v = 0; v < kVectors; ++v) {
        Store(of_row + v * kLanes<A>, Load(of_row + v * kLanes<A>) + across[r][v]);
      }
    }
  }
}

template <int kVectors, typename T, typename A = Accumulate<T>>
inline void AverageChannels(const KaoBlock<const T>& x, int64_t channel, const T* end, A* means,
                            int64_t row) {
  for (int64_t i = 0; i < x.columns + x.rows; ++i) {
    for (int v = 0; v < kVectors; ++v) Store(means + i * row + channel + v * kLanes<A>, Vec<A>{});
  }
  int64_t r = 0;
  for (; r + kRowsAtOnce <= x.rows; r += kRowsAtOnce)
    SumRows<kRowsAtOnce, kVectors>(x, r, channel, end, means, row);
  for (; r < x.rows; ++r) SumRows<1, kVectors>(x, r, channel, end, means, row);
  for (int64_t i = 0; i < x.columns + x.rows; ++i) {
    const A count = static_cast<A>(i < x.columns ? x.rows : x.columns);
    for (int v = 0; v < kVectors; ++v) {
      A* mean = means + i * row + channel + v * kLanes<A>;
      Store(mean, Load(mean) / count);
    }
  }
}

template <typename T, typename A = Accumulate<T>>
void AverageAlongChannels(const KaoBlock<const T>& x, A* means, int64_t row) {
  const T* end = EndOf(x);
  int64_t c = 0;
  for (; c + (kChannelVectors - 1) * kLanes<A> < x.channels; c += kChannelVectors * kLanes<A>) {
    AverageChannels<kChannelVectors>(x, c, end, means, row);
  }
  for (; c < x.channels; c += kLanes<A>) AverageChannels<1>(x, c, end, means, row);
}

template <typename T, typename A = Accumulate<T>>
void Average(const KaoBlock<const T>& x, A* means, int64_t row) {
  if (x.channels_adjacent) {
    AverageAlongChannels(x, means, row);
  } else if (x.column_stride == 1) {
    AverageAlongColumns<true>(x, means, row);
  } else {
    AverageAlongColumns<false>(x, means, row);
  }
}

enum class Residual { kNone, kAdjacent, kStrided };

// to[i] = first[i] + second (+ x[i * stride]) for i < count; `second` is a number, or an array indexed by i.
template <Residual kResidual, typename T, typename Second, typename A = Accumulate<T>>
inline void SpreadRun(const T* x, int64_t stride, const T* x_end, const A* first, Second second,
                      int64_t count, T* to, const T* to_end) {
  for (int64_t i = 0; i < count; i += kLanes<A>) {
    Vec<A> y = Load(first + i);
    if constexpr (std::is_pointer_v<Second>) {
      y += Load(second + i);
    } else {
      y += second;
    }
    if constexpr (kResidual != Residual::kNone) {
      y += LoadLanes < kResidual == Residual::kAdjacent > (x + i * stride, stride, count - i, x_end);
    }
    StoreLanes(to + i, y, count - i, to_end);
  }
}

// Proceeds in the order of out's memory, so that lanes written past the end of a run are overwritten later.
template <Residual kResidual, typename T, typename A = Accumulate<T>>
void SpreadAs(const KaoBlock<const T>& x, const A* of_columns, const A* of_rows, int64_t row,
              const KaoBlock<T>& out) {
  const T* x_end = kResidual == Residual::kNone ? nullptr : EndOf(x);
  const T* out_end = EndOf(out);
  if (out.channels_adjacent) {
    for (int64_t r = 0; r < out.rows; ++r) {
      for (int64_t j = 0; j < out.columns; ++j) {
        SpreadRun<kResidual>(x.data + r * x.row_stride + j * x.column_stride, x.channel_stride, x_end,
                             of_columns + j * row, of_rows + r * row, out.channels,
                             out.data + r * out.row_stride + j * out.column_stride, out_end);
      }
    }
    return;
  }
  for (int64_t c = 0; c < out.channels; ++c) {
    for (int64_t r = 0; r < out.rows; ++r) {
      SpreadRun<kResidual>(x.data + c * x.channel_stride + r * x.row_stride, x.column_stride, x_end,
                           of_columns + c * row, of_rows[c * row + r], out.columns,
                           out.data + c * out.channel_stride + r * out.row_stride, out_end);
    }
  }
}

template <typename T, typename A = Accumulate<T>>
void Spread(const KaoBlock<const T>* x, const A* of_columns, const A* of_rows, int64_t row,
            const KaoBlock<T>& out) {
  if (x == nullptr) {
    SpreadAs<Residual::kNone>(KaoBlock<const T>{}, of_columns, of_rows, row, out);
  } else if ((out.channels_adjacent ? x->channel_stride : x->column_stride) == 1) {
    SpreadAs<Residual::kAdjacent>(*x, of_columns, of_rows, row, out);
  } else {
    SpreadAs<Residual::kStrided>(*x, of_columns, of_rows, row, out);
  }
}

template <typename T>
inline constexpr KaoBlockCode<T> kKaoBlockCode = {&Average<T>, &Spread<T>};

}  // namespace saccade::kernels::SACCADE_ISA
