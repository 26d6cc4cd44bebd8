// The inner loops of siamese attention on a block of positions that fits in the cache, once per instruction
// set.
#pragma once

#include <cstdint>

#include "kernels/common/bfloat16.h"
#include "kernels/common/cpu_isa.h"

namespace saccade::kernels {

// [channels, positions] of one sample. Vectors run along positions if those are adjacent in memory, otherwise
// along channels, which are adjacent then. All blocks of one call have the same layout.
template <typename T>
struct SaoBlock {
  T* data = nullptr;
  int64_t channels = 0;
  int64_t positions = 0;
  int64_t channel_stride = 0;
  int64_t position_stride = 0;
  bool positions_adjacent = true;
};

// Rows of scores have one entry per position, and are padded so that whole vectors may be read and written.
inline constexpr int64_t kSaoRowPadding = 16;

template <typename T>
struct SaoBlockCode {
  using A = Accumulate<T>;

  // scores[h][p] = sum over the channels c of head h of w[c] x[c][p].
  void (*scores)(const SaoBlock<const T>& x, const A* w, int64_t heads, A* scores, int64_t row);

  // moments[r][c] += sum over p of rows[r][p] x[c][p].
  void (*moments)(const SaoBlock<const T>& x, const A* rows, int64_t row_count, int64_t row, A* moments,
                  int64_t moments_row);

  // out[c][p] = slope[c] scores[head of c][p] + offset[c] (+ x[c][p] if x is not null).
  void (*apply)(const SaoBlock<const T>* x, const A* slope, const A* offset, int64_t heads, const A* scores,
                int64_t row, const SaoBlock<T>& out);

  // first[i] = weight[i] . x and second[i] = weight[i] . y for each row of weight.
  void (*transform)(const A* weight, int64_t row_count, int64_t columns, const A* x, const A* y, A* first,
                    A* second);
};

struct SaoCode {
  SaoBlockCode<float> f32;
  SaoBlockCode<BFloat16> bf16;
};

const SaoCode& SaoPortableCode();
#if defined(__x86_64__)
const SaoCode& SaoAvx2Code();
const SaoCode& SaoAvx512Code();
#endif
// float64 is for checking only, so it has only a portable version.
const SaoBlockCode<double>& SaoDoubleCode();

}  // namespace saccade::kernels
