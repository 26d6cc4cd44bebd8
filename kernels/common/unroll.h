// Loops that are unrolled in every build, in the namespace of the translation unit's instruction set.
#pragma once

#include <type_traits>

#include "kernels/common/vec.h"

namespace saccade::kernels::SACCADE_ISA {

// Calls visit(integral_constant) for each number below kCount. A loop would keep vectors in memory.
template <int kCount, typename Visit>
[[gnu::always_inline]] inline void ForEach(const Visit& visit) {
  if constexpr (kCount > 0) {
    ForEach<kCount - 1>(visit);
    visit(std::integral_constant<int, kCount - 1>{});
  }
}

}  // namespace saccade::kernels::SACCADE_ISA
