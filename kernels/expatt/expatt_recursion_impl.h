// Included only by expatt_portable.cc, expatt_avx2.cc and expatt_avx512.cc, each compiled with its own flags.
#pragma once

#include "kernels/common/vec.h"
#include "kernels/expatt/expatt_recursion.h"

namespace saccade::kernels::SACCADE_ISA {

// Processes kVectors vectors of columns, whose running sums stay in registers.
template <int kVectors, typename A>
inline void RecurColumns(A* lines, int64_t count, int64_t row, A loss, A* scratch) {
  constexpr int kWidth = kVectors * kLanes<A>;
  // Contribution of all rows on one side of a row. The first pass stores those of the rows below; the second
  // pass adds them to those of the rows above.
  Vec<A> sums[kVectors] = {};
  for (int64_t r = count - 1; r >= 0; --r) {
    for (int v = 0; v < kVectors; ++v) {
      Store(scratch + r * kWidth + v * kLanes<A>, sums[v]);
      const Vec<A> all = Load(lines + r * row + v * kLanes<A>) + sums[v];
      // all * (1 - loss) would be less precise, because 1 - loss is close to one and would be rounded.
      sums[v] = all - all * loss;
    }
  }
  for (int v = 0; v < kVectors; ++v) sums[v] = Vec<A>{};
  for (int64_t r = 0; r < count; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      A* at = lines + r * row + v * kLanes<A>;
      const Vec<A> all = Load(at) + sums[v];
      Store(at, all + Load(scratch + r * kWidth + v * kLanes<A>));
      sums[v] = all - all * loss;
    }
  }
}

template <typename A>
void Recur(A* lines, int64_t count, int64_t columns, int64_t row, A loss, A* scratch) {
  constexpr int kVectors = 4;
  static_assert(kVectors * kLanes<A> <= kExpattRecursionColumns);
  int64_t j = 0;
  for (; j + kVectors * kLanes<A> <= columns; j += kVectors * kLanes<A>) {
    RecurColumns<kVectors>(lines + j, count, row, loss, scratch);
  }
  for (; j < columns; j += kLanes<A>) RecurColumns<1>(lines + j, count, row, loss, scratch);
}

}  // namespace saccade::kernels::SACCADE_ISA
