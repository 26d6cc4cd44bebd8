// Copies strided strips of feature maps to and from tiles; part of tile_impl.h.
#pragma once

#include <utility>

#include "kernels/common/vec.h"
#include "kernels/tile/tile.h"

namespace saccade::kernels::SACCADE_ISA {

template <typename T>
inline Accumulate<T> Widened(T value) {
  return static_cast<Accumulate<T>>(value);
}

// Exchanges the odd blocks of kStep lanes of one vector with the even blocks of the other.
template <typename A, int kStep, int... lane>
inline void ExchangeBlocks(Vec<A>& first, Vec<A>& second, std::integer_sequence<int, lane...>) {
  const Vec<A> a = first;
  const Vec<A> b = second;
  first = __builtin_shufflevector(a, b, ((lane & kStep) == 0 ? lane : kLanes<A> + lane - kStep)...);
  second = __builtin_shufflevector(a, b, ((lane & kStep) == 0 ? lane + kStep : kLanes<A> + lane)...);
}

// Transposes a square of lanes x lanes in registers by exchanging blocks of doubling size.
template <typename A, int kStep = 1>
inline void TransposeSquare(Vec<A> (&rows)[kLanes<A>]) {
  if constexpr (kStep < kLanes<A>) {
    for (int i = 0; i < kLanes<A>; ++i) {
      if ((i & kStep) == 0)
        ExchangeBlocks<A, kStep>(rows[i], rows[i + kStep], std::make_integer_sequence<int, kLanes<A>>());
    }
    TransposeSquare<A, 2 * kStep>(rows);
  }
}

// to[c * to_row + i] = from[i * from_row + c]: whole squares in registers, the edges one by one.
template <typename T, typename A = Accumulate<T>>
void TransposeFrom(const T* from, int64_t rows, int64_t columns, int64_t from_row, A* to, int64_t to_row) {
  constexpr int64_t kSide = kLanes<A>;
  int64_t i = 0;
  for (; i + kSide <= rows; i += kSide) {
    int64_t c = 0;
    for (; c + kSide <= columns; c += kSide) {
      Vec<A> square[kSide];
      for (int64_t s = 0; s < kSide; ++s) square[s] = Load(from + (i + s) * from_row + c);
      TransposeSquare<A>(square);
      for (int64_t s = 0; s < kSide; ++s) Store(to + (c + s) * to_row + i, square[s]);
    }
    for (; c < columns; ++c) {
      for (int64_t s = 0; s < kSide; ++s) to[c * to_row + i + s] = Widened(from[(i + s) * from_row + c]);
    }
  }
  for (; i < rows; ++i) {
    for (int64_t c = 0; c < columns; ++c) to[c * to_row + i] = Widened(from[i * from_row + c]);
  }
}

template <typename A>
void Transpose(const A* from, int64_t rows, int64_t columns, int64_t from_row, A* to, int64_t to_row) {
  TransposeFrom(from, rows, columns, from_row, to, to_row);
}

// The same transposition from tile to map, to[i * to_row + c] = from[c * from_row + i]; converts each entry
// from A to T.
template <typename T, typename A = Accumulate<T>>
void TransposeTo(const A* from, int64_t rows, int64_t columns, int64_t from_row, T* to, int64_t to_row) {
  constexpr int64_t kSide = kLanes<A>;
  int64_t c = 0;
  for (; c + kSide <= rows; c += kSide) {
    int64_t i = 0;
    for (; i + kSide <= columns; i += kSide) {
      Vec<A> square[kSide];
      for (int64_t s = 0; s < kSide; ++s) square[s] = Load(from + (c + s) * from_row + i);
      TransposeSquare<A>(square);
      for (int64_t s = 0; s < kSide; ++s) Store(to + (i + s) * to_row + c, square[s]);
    }
    for (; i < columns; ++i) {
      for (int64_t s = 0; s < kSide; ++s) to[i * to_row + c + s] = T(from[(c + s) * from_row + i]);
    }
  }
  for (; c < rows; ++c) {
    for (int64_t i = 0; i < columns; ++i) to[i * to_row + c] = T(from[c * from_row + i]);
  }
}

// Copies a short stretch of a long row. The next tile continues where it ends, but the stretches are too
// short for the hardware prefetcher, so the continuation is prefetched explicitly.
template <typename T, typename A = Accumulate<T>>
inline void CopyRow(const T* from, int64_t count, A* to) {
  int64_t i = 0;
  for (; i + kLanes<A> <= count; i += kLanes<A>) {
    __builtin_prefetch(from + count + i);
    Store(to + i, Load(from + i));
  }
  for (; i < count; ++i) to[i] = Widened(from[i]);
}

// Copies outer x inner entries; those of the inner dimension are adjacent in `to`.
template <typename T, typename A = Accumulate<T>>
void Gather(const T* from, int64_t outer, int64_t outer_stride, int64_t inner, int64_t inner_stride, A* to,
            int64_t row) {
  if (inner_stride == 1) {
    for (int64_t o = 0; o < outer; ++o) CopyRow(from + o * outer_stride, inner, to + o * row);
  } else if (outer_stride == 1) {
    TransposeFrom(from, inner, outer, inner_stride, to, row);
  } else {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < inner; ++i)
        to[o * row + i] = Widened(from[o * outer_stride + i * inner_stride]);
    }
  }
}

// Casts `data` to a pointer to the map's element type and calls run() with it.
template <typename A, typename Void, typename Run>
inline void AsStored(Void* data, Dtype dtype, const Run& run) {
  constexpr bool kConst = std::is_const_v<Void>;
  if constexpr (std::is_same_v<A, double>) {
    run(static_cast<std::conditional_t<kConst, const double, double>*>(data));
  } else if (dtype == Dtype::kBFloat16) {
    run(static_cast<std::conditional_t<kConst, const BFloat16, BFloat16>*>(data));
  } else {
    run(static_cast<std::conditional_t<kConst, const float, float>*>(data));
  }
}

template <typename A>
void LoadStrip(const Strip& from, int64_t channels, int64_t length, A* tile, int64_t row) {
  AsStored<A>(from.data, from.dtype, [&](const auto* data) {
    Gather(data, channels, from.channel_stride, length, from.position_stride, tile, row);
  });
}

template <typename A>
void LoadStripTransposed(const Strip& from, int64_t channels, int64_t length, A* matrix, int64_t row) {
  AsStored<A>(from.data, from.dtype, [&](const auto* data) {
    Gather(data, length, from.position_stride, channels, from.channel_stride, matrix, row);
  });
}

template <typename A>
void StoreStrip(const A* tile, int64_t row, int64_t channels, int64_t length, const OutputStrip& to) {
  AsStored<A>(to.data, to.dtype, [&](auto* data) {
    using T = std::remove_pointer_t<decltype(data)>;
    if (to.position_stride == 1) {
      for (int64_t c = 0; c < channels; ++c) {
        T* at = data + c * to.channel_stride;
        int64_t i = 0;
        for (; i + kLanes<A> <= length; i += kLanes<A>) Store(at + i, Load(tile + c * row + i));
        for (; i < length; ++i) at[i] = T(tile[c * row + i]);
      }
    } else if (to.channel_stride == 1) {
      TransposeTo(tile, channels, length, row, data, to.position_stride);
    } else {
      for (int64_t c = 0; c < channels; ++c) {
        for (int64_t i = 0; i < length; ++i) {
          data[c * to.channel_stride + i * to.position_stride] = T(tile[c * row + i]);
        }
      }
    }
  });
}

}  // namespace saccade::kernels::SACCADE_ISA
