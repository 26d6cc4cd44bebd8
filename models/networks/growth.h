// Growth of boxes and segments by the offsets that a detector computes. Does not include LibTorch.
#pragma once

#include <algorithm>
#include <cmath>

namespace saccade::models {

// Returns the factor by which a side grows: e to the power of `offset`, but at most 62.5, as in torchvision.
// Larger growth is an artefact and would overflow. MaxGrowthOffset() is the offset of 62.5.
inline float MaxGrowthOffset() {
  static const auto kMaxOffset = static_cast<float>(std::log(1000.0 / 16));
  return kMaxOffset;
}
inline float Growth(float offset) { return std::exp(std::min(offset, MaxGrowthOffset())); }

}  // namespace saccade::models
