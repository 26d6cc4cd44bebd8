// The two passes over a whole picture, once per instruction set. They are bound by memory, so they read and
// write maps where they lie instead of by way of tiles.
#pragma once

#include <cstdint>

#include "kernels/common/bfloat16.h"
#include "kernels/common/cpu_isa.h"

namespace saccade::kernels {

// Channels and valid positions of one sample. Vectors run along channels if `channels_adjacent`, else along
// columns.
template <typename T>
struct KaoBlock {
  T* data = nullptr;
  int64_t channels = 0;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t channel_stride = 0;
  int64_t row_stride = 0;
  int64_t column_stride = 0;
  bool channels_adjacent = false;
};

// Matrices of averages hold the `columns` column means, then the `rows` row means; their rows are padded to a
// multiple of 16 entries, which may be written.
template <typename T>
struct KaoBlockCode {
  using A = Accumulate<T>;

  // The means of x: means[j * row + c] if its channels are adjacent, else means[c * row + j]. Any strides.
  void (*average)(const KaoBlock<const T>& x, A* means, int64_t row);

  // out(c, a, b) = of_column(c, b) + of_row(c, a) (+ x(c, a, b) if x is given), both lying as means do for
  // out's order of memory. x may have any strides. Whatever lies between out's first and last element may be
  // overwritten.
  void (*spread)(const KaoBlock<const T>* x, const A* of_columns, const A* of_rows, int64_t row,
                 const KaoBlock<T>& out);
};

struct KaoCode {
  KaoBlockCode<float> f32;
  KaoBlockCode<BFloat16> bf16;
};

const KaoCode& KaoPortableCode();
#if defined(__x86_64__)
const KaoCode& KaoAvx2Code();
const KaoCode& KaoAvx512Code();
#endif
// float64 is for checking, not for serving: one portable version does.
const KaoBlockCode<double>& KaoDoubleCode();

}  // namespace saccade::kernels
