// The inner loops of axial attention, once per instruction set. tile.h's products do not fit: every line (a
// column or a row) has its own small matrices, so kLines of them are processed side by side.
#pragma once

#include <cstdint>

#include "kernels/common/cpu_isa.h"

namespace saccade::kernels {

inline constexpr int64_t kLines = 16;

// Loops over `length` positions along kLines lines, with blocks x[i][c][line]. The content of unused lines is
// unspecified.
template <typename A>
struct GsaLineCode {
  // scores[i][line] = sum over c of query[c][line] * (embedding[i][c] + keys[i][c][line]). `keys` is a block
  // or null.
  void (*scores)(int64_t length, int64_t channels, const A* query, const A* embedding, const A* keys,
                 A* scores);
  // out[v][line] = sum over i of scores[i][line] * values[i][v][line].
  void (*weigh)(int64_t length, int64_t channels, const A* scores, const A* values, A* out);
};

template <typename A>
const GsaLineCode<A>& GsaLineCodeFor(CpuIsa isa);
template <>
const GsaLineCode<float>& GsaLineCodeFor<float>(CpuIsa isa);
template <>
const GsaLineCode<double>& GsaLineCodeFor<double>(CpuIsa isa);

const GsaLineCode<float>& GsaPortableLineCode();
#if defined(__x86_64__)
const GsaLineCode<float>& GsaAvx2LineCode();
const GsaLineCode<float>& GsaAvx512LineCode();
#endif
// float64 is for checking only, so it has only a portable version.
const GsaLineCode<double>& GsaDoubleLineCode();

}  // namespace saccade::kernels
