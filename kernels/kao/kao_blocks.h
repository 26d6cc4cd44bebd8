// The two passes over a whole image, once per instruction set. They are memory-bound, so they read and write
// maps directly instead of through tiles.
#pragma once

#include <cstdint>

#include "kernels/common/bfloat16.h"
#include "kernels/common/cpu_isa.h"

namespace saccade::kernels {

// Channels and valid positions of one sample. Vectors run along channels if `channels_adjacent`, otherwise
// along columns.
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

// Matrices of averages hold the `columns` column means, then the `rows` row means. Their rows are padded to a
// multiple of 16 entries; the padding may be overwritten.
template <typename T>
struct KaoBlockCode {
  using A = Accumulate<T>;

  // Computes the means of x: means[j * row + c] if x's channels are adjacent, otherwise means[c * row + j]. x
  // may have any strides.
  void (*average)(const KaoBlock<const T>& x, A* means, int64_t row);

  // out(c, a, b) = of_columns(c, b) + of_rows(c, a) (+ x(c, a, b) if x is not null). of_columns and of_rows
  // have the layout of `average` for out's memory order. x may have any strides. All memory between out's
  // first and last element may be overwritten.
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
// float64 is for checking only, so it has only a portable version.
const KaoBlockCode<double>& KaoDoubleCode();

}  // namespace saccade::kernels
