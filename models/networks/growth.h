// Growth of boxes and segments by the offsets that a detector computes. Does not include LibTorch.
#pragma once

#include <algorithm>
#include <cmath>

namespace saccade::models {

// Returns the factor by which a side grows: e to the power of `offset`, but at most 62.5, as in torchvision.
// Larger growth is an artefact and would overflow.
inline float Growth(float offset) {
  static const auto kMaxOffset = static_cast<float>(std::log(1000.0 / 16));
  return std::exp(std::min(offset, kMaxOffset));
}

}  // namespace saccade::models
