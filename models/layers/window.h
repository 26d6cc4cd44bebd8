// Geometry of a sliding window over a map. Does not include LibTorch.
#pragma once

#include <cstdint>

#include "models/api/placement.h"

namespace saccade::models {

struct Window {
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t dilation = 1;
  bool ceil = false;  // an incomplete last window counts, by PyTorch's rule

  // Number of window positions along a side of `size`.
  int64_t After(int64_t size) const {
    const int64_t span = size + 2 * padding - dilation * (kernel - 1) - 1;
    if (!ceil) return span < 0 ? 0 : span / stride + 1;
    const int64_t after = (span + stride - 1) / stride + 1;
    // The last window must begin within the map or its left padding.
    return (after - 1) * stride >= size + padding ? after - 1 : after;
  }
  // Whether every side keeps its size.
  bool KeepsSize() const { return stride == 1 && 2 * padding == dilation * (kernel - 1); }
  Size After(Size size) const { return {After(size.height), After(size.width)}; }
};

}  // namespace saccade::models
