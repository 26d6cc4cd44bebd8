// Scales a network's channels by its width. Does not include LibTorch.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace saccade::models {

// Returns the multiple of 8 nearest to channels * width, rounding halves up, and at least 8.
inline int64_t Scaled(int64_t channels, double width) {
  const double eighths = std::floor(static_cast<double>(channels) * width / 8 + 0.5);
  return std::max<int64_t>(8, 8 * static_cast<int64_t>(eighths));
}

}  // namespace saccade::models
