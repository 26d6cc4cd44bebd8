// The one inner loop of this operator that kernels/tile has not: an exponential of the distance along a line,
// by two passes over it. Compiled once per instruction set.
#pragma once

#include <cstdint>

#include "kernels/common/cpu_isa.h"

namespace saccade::kernels {

// Row r of `lines` becomes the sum over all s of (1 - loss)^|r - s| times row s, column by column. Columns
// are padded as tile.h says; `scratch` has room for count * kExpattRecursionColumns.
template <typename A>
using ExpattRecursion = void (*)(A* lines, int64_t count, int64_t columns, int64_t row, A loss, A* scratch);

inline constexpr int64_t kExpattRecursionColumns = 64;

// For `isa`, which this processor must have. double always gets the portable one: it is for checking.
template <typename A>
ExpattRecursion<A> ExpattRecursionFor(CpuIsa isa);

// Where that finds them.
ExpattRecursion<float> PortableExpattRecursion();
ExpattRecursion<double> DoubleExpattRecursion();
#if defined(__x86_64__)
ExpattRecursion<float> Avx2ExpattRecursion();
ExpattRecursion<float> Avx512ExpattRecursion();
#endif

}  // namespace saccade::kernels
