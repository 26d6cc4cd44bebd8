// How a sliding window walks a map. No LibTorch here.
#pragma once

#include <cstdint>

#include "models/placement.h"

namespace saccade::models {

struct Window {
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t dilation = 1;
  bool ceil = false;  // a last window that is not full counts, by PyTorch's rule

  // Positions that it has along a side.
  int64_t After(int64_t size) const {
    const int64_t span = size + 2 * padding - dilation * (kernel - 1) - 1;
    if (!ceil) return span < 0 ? 0 : span / stride + 1;
    const int64_t after = (span + stride - 1) / stride + 1;
    // The last window has to begin within the map or the padding on its left.
    return (after - 1) * stride >= size + padding ? after - 1 : after;
  }
  // Of every side.
  bool KeepsSize() const { return stride == 1 && 2 * padding == dilation * (kernel - 1); }
  Size After(Size size) const { return {After(size.height), After(size.width)}; }
};

}  // namespace saccade::models
