// Converts between a volume's own units and those in which networks are trained.
#pragma once

#include <ATen/core/Tensor.h>

#include "models/networks/unet3d/tiles.h"

namespace saccade::models {

// value = offset + scale * network input
struct Units {
  double offset = 0;
  double scale = 1;
};

// Returns units in which the 2nd percentile is 0 and the 99.8th is 1 (1e-20 is added to the range, against
// division by zero). Interpolates between values as numpy.percentile does. Exact and deterministic: values
// are counted, not sampled. `volume` is float32, contiguous, finite and not empty.
Units PercentileUnits(const at::Tensor& volume);

// Converts a contiguous [D, H, W] to network input, [1, 1, D, H, W] of size `sides`; the last value along
// each axis is repeated as padding. Computes in float64, as a volume's values may differ little and be far
// from zero.
at::Tensor Normalised(const at::Tensor& volume, const Units& units, const VolumeSides& sides);

// The inverse conversion, in place.
void ToUnits(at::Tensor& values, const Units& units);

}  // namespace saccade::models
