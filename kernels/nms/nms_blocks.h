// The inner loop of non-maximum suppression, once per instruction set.
#pragma once

#include <cstdint>
#include <limits>

#include "kernels/common/cpu_isa.h"

namespace saccade::kernels {

// Boxes as separate arrays, which are readable up to the next multiple of kNmsPadding after the last
// requested box.
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
  // If the intersection of a pair is less than this fraction of the union, its overlap is certainly not above
  // the threshold. NaN: unknown, so always divide.
  A surely_below = std::numeric_limits<A>::quiet_NaN();
};

template <typename A>
struct NmsBlockCode {
  // Returns true if any of boxes [begin, end) overlaps box i by more than the threshold. `begin` is a
  // multiple of kNmsPadding.
  bool (*any_over)(const NmsBoxes<A>& boxes, int64_t begin, int64_t end, int64_t i, const NmsLimit<A>& limit);
};

const NmsBlockCode<float>& NmsPortableCode();
#if defined(__x86_64__)
const NmsBlockCode<float>& NmsAvx2Code();
const NmsBlockCode<float>& NmsAvx512Code();
#endif
// float64 is for checking only, so it has only a portable version.
const NmsBlockCode<double>& NmsDoubleCode();

}  // namespace saccade::kernels
