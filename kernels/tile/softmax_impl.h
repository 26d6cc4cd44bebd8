// Exponentials, and softmax over the columns of a matrix; part of tile_impl.h.
#pragma once

#include "kernels/common/vec.h"
#include "kernels/tile/tile.h"

namespace saccade::kernels::SACCADE_ISA {

// Returns e^x within two units in the last place, and zero if that is below the smallest normal number. NaN
// stays NaN. Uses x = n ln 2 + r with |r| <= ln 2 / 2; ln 2 is split in two parts, so that n times the upper
// part is exact.
inline Vec<float> Exp(Vec<float> x) {
  constexpr float kLowest = -87.33654f;
  constexpr float kHighest = 88.37626f;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits
  const Bits<float> vanishes = x < Broadcast(kLowest);
  x = x > Broadcast(kHighest) ? Broadcast(kHighest) : x;
  const Vec<float> shifted = x * 1.44269504088896341f + kRound;
  const Vec<float> n = shifted - kRound;
  const Vec<float> r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  Vec<float> p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  const auto power = ((Words)shifted << 23) + (127u << 23);
  const Vec<float> y = p * (Vec<float>)power;
  return (Vec<float>)((Bits<float>)y & ~vanishes);
}

inline Vec<double> Exp(Vec<double> x) {
  for (int i = 0; i < kLanes<double>; ++i) x[i] = __builtin_exp(x[i]);
  return x;
}

template <typename A>
inline Vec<A> Larger(Vec<A> a, Vec<A> b) {
  return a > b ? a : b;
}

// Returns the maximum of `max` and all rows, for one vector of columns.
template <typename A>
inline Vec<A> ColumnMax(const A* x, int64_t rows, int64_t row, Vec<A> max) {
  for (int64_t r = 0; r < rows; ++r) max = Larger<A>(Load(x + r * row), max);
  return max;
}

// Sets x = e^(x - max) in place and returns the sums. Handles two rows at a time, because a single chain of
// dependent operations is latency-bound.
template <typename A>
inline Vec<A> ExpColumns(A* x, int64_t rows, int64_t row, Vec<A> max) {
  Vec<A> even{}, odd{};
  int64_t r = 0;
  for (; r + 2 <= rows; r += 2) {
    const Vec<A> first = Exp(Load(x + r * row) - max);
    const Vec<A> second = Exp(Load(x + (r + 1) * row) - max);
    Store(x + r * row, first);
    Store(x + (r + 1) * row, second);
    even += first;
    odd += second;
  }
  if (r < rows) {
    const Vec<A> last = Exp(Load(x + r * row) - max);
    Store(x + r * row, last);
    even += last;
  }
  return even + odd;
}

template <typename A>
void Softmax(A* x, int64_t rows, int64_t columns, int64_t row) {
  for (int64_t j = 0; j < columns && rows > 0; j += kLanes<A>) {
    const Vec<A> max = ColumnMax(x + j, rows, row, Load(x + j));
    const Vec<A> factor = A{1} / ExpColumns(x + j, rows, row, max);
    for (int64_t r = 0; r < rows; ++r) Store(x + r * row + j, Load(x + r * row + j) * factor);
  }
}

template <typename A>
bool OnlineSoftmax(A* x, int64_t rows, int64_t columns, int64_t row, A* max, A* sum, A* rescale) {
  bool changed = false;
  if (rows <= 0) return changed;
  for (int64_t j = 0; j < columns; j += kLanes<A>) {
    const Vec<A> before = Load(max + j);
    const Vec<A> now = ColumnMax(x + j, rows, row, before);
    const auto same = before == now;
    // Also covers max = -infinity before and after, where the difference would be NaN.
    const Vec<A> factor = same ? Broadcast(A{1}) : Exp(before - now);
    Store(max + j, now);
    Store(rescale + j, factor);
    Store(sum + j, Load(sum + j) * factor + ExpColumns(x + j, rows, row, now));
    for (int i = 0; i < kLanes<A>; ++i) changed |= same[i] == 0;
  }
  return changed;
}

}  // namespace saccade::kernels::SACCADE_ISA
