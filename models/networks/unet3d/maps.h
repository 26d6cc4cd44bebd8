// Parts of maps: taken out, pooled, enlarged, put in place. Maps are [1, C, D, H, W], channels-last; planes
// have a depth of 1.
#pragma once

#include <ATen/core/Tensor.h>

#include "models/networks/unet3d/tiles.h"
#include "models/target.h"

namespace saccade::models {

Sides SidesOf(const at::Tensor& map);

// Of the target's type, and there; not yet filled.
at::Tensor NewMap(int64_t channels, const Sides& sides, const Target& target);

// A view.
at::Tensor View(const at::Tensor& map, const Part& part);

// A dense copy on the target, of its type.
at::Tensor TakenPart(const at::Tensor& map, const Part& part, const Target& target);

// The largest of each `step` positions.
at::Tensor Pooled(const at::Tensor& map, const Sides& step);

// `skip`, and behind its channels those of `coarse`, enlarged to as many positions.
at::Tensor Joined(const at::Tensor& skip, const at::Tensor& coarse);

}  // namespace saccade::models
