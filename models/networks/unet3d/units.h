// A volume's own units, and those that networks are trained in.
#pragma once

#include <ATen/core/Tensor.h>

#include "models/networks/unet3d/tiles.h"

namespace saccade::models {

// value = offset + scale * what the network sees.
struct Units {
  double offset = 0;
  double scale = 1;
};

// So that the 2nd percentile is 0 and the 99.8th 1 (1e-20 keeps apart what is not); between two values as
// numpy.percentile does. Exact and the same every time: values are counted, not sampled. `volume` is float32,
// contiguous, finite and not empty.
Units PercentileUnits(const at::Tensor& volume);

// As the network sees it, with the last of each axis repeated until there are `sides`: [1, 1, D, H, W] of a
// contiguous [D, H, W]. Computed in float64, as volumes may have small values far from zero.
at::Tensor Normalised(const at::Tensor& volume, const Units& units, const Sides& sides);

// Back again, in place.
void ToUnits(at::Tensor& values, const Units& units);

}  // namespace saccade::models
