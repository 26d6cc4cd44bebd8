// Max pooling of pictures' maps.
#pragma once

#include <ATen/ops/max_pool2d.h>

#include "models/layers/window.h"

namespace saccade::models {

// x is of floats or in 8 bits; the result is of the same kind, on the same grid.
inline at::Tensor MaxPool(const at::Tensor& x, const Window& window) {
  // ATen's form for maps in 8 bits expects every side's extents.
  return at::max_pool2d(x, {window.kernel, window.kernel}, {window.stride, window.stride},
                        {window.padding, window.padding}, {1, 1}, window.ceil);
}

}  // namespace saccade::models
