// The inner loop of non-maximum suppression, once per instruction set.
#pragma once

#include <cstdint>

#include "kernels/common/cpu_isa.h"

namespace saccade::kernels {

// Boxes side by side, readable up to the next multiple of kNmsPadding after the last one that is asked for.
template <typename A>
struct NmsBoxes {
  A* x1 = nullptr;
  A* y1 = nullptr;
  A* x2 = nullptr;
  A* y2 = nullptr;
  A* area = nullptr;

  NmsBoxes From(int64_t first) const {
    return {x1 + first, y1 + first, x2 + first, y2 + first, area + first};
  }
};
inline constexpr int64_t kNmsPadding = 16;

template <typename A>
struct NmsLimit {
  A threshold = 0;
  // No pair whose intersection is less than this share of the union is above the threshold; or less than
  // zero: only the division tells.
  A surely_below = -1;
};

template <typename A>
struct NmsBlockCode {
  // Whether any of boxes [begin, end) overlaps box i by more than the threshold. `begin` is a multiple of
  // kNmsPadding.
  bool (*any_over)(const NmsBoxes<A>& boxes, int64_t begin, int64_t end, int64_t i, const NmsLimit<A>& limit);
};

const NmsBlockCode<float>& NmsPortableCode();
#if defined(__x86_64__)
const NmsBlockCode<float>& NmsAvx2Code();
const NmsBlockCode<float>& NmsAvx512Code();
#endif
// float64 is for checking, not for serving: one portable version does.
const NmsBlockCode<double>& NmsDoubleCode();

}  // namespace saccade::kernels
