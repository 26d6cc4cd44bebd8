// Copies, pools and upsamples parts of maps. Maps are [1, C, D, H, W], channels-last; planes have a depth of
// 1.
#pragma once

#include <ATen/core/Tensor.h>

#include "models/api/target.h"
#include "models/networks/unet3d/tiles.h"

namespace saccade::models {

VolumeSides SidesOf(const at::Tensor& map);

// Allocates an uninitialised map of the target's type, on the target.
at::Tensor NewMap(int64_t channels, const VolumeSides& sides, const Target& target);

// Returns a view of the part.
at::Tensor View(const at::Tensor& map, const Part& part);

// Returns a dense copy of the part on the target, of its type.
at::Tensor TakenPart(const at::Tensor& map, const Part& part, const Target& target);

// Max pooling over `step` positions.
at::Tensor Pooled(const at::Tensor& map, const VolumeSides& step);

// Concatenates the channels of `skip` and of `coarse`, which is upsampled (nearest) to the same size.
at::Tensor Joined(const at::Tensor& skip, const at::Tensor& coarse);

}  // namespace saccade::models
