// The only inner loop of this operator that kernels/tile does not have: an exponential of the distance along
// a line, in two passes. Compiled once per instruction set.
#pragma once

#include <cstdint>

#include "kernels/common/cpu_isa.h"

namespace saccade::kernels {

// Replaces row r of `lines` by the sum over all s of (1 - loss)^|r - s| times row s, for every column.
// Columns are padded as in tile.h; `scratch` has room for count * kExpattRecursionColumns elements.
template <typename A>
using ExpattRecursion = void (*)(A* lines, int64_t count, int64_t columns, int64_t row, A loss, A* scratch);

inline constexpr int64_t kExpattRecursionColumns = 64;

// Returns the loop for `isa`, which this processor must support. double always gets the portable one, because
// it is only for checking.
template <typename A>
ExpattRecursion<A> ExpattRecursionFor(CpuIsa isa);

// The loops that ExpattRecursionFor() selects from.
ExpattRecursion<float> PortableExpattRecursion();
ExpattRecursion<double> DoubleExpattRecursion();
#if defined(__x86_64__)
ExpattRecursion<float> Avx2ExpattRecursion();
ExpattRecursion<float> Avx512ExpattRecursion();
#endif

}  // namespace saccade::kernels
