// Pools a clip's map within segments.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "models/networks/rc3d/segment.h"

namespace saccade::models {

// Returns the maxima over kRegionBins bins of each segment, [K, C, 4, 2, 2], channels-last; `map` is [1, C,
// T, H, W], and `segments` is not empty. A segment covers every step that it touches: from floor(start / 8)
// up to but excluding ceil(end / 8), and at least one. Of these L steps, bin i of 4 holds those from floor(i
// L / 4) up to but excluding ceil((i + 1) L / 4), so that bins share steps if L is not a multiple of 4.
// Height and width are divided in the same way. (This is the rule of adaptive pooling.)
at::Tensor PoolSegments(const at::Tensor& map, const std::vector<Segment>& segments);

}  // namespace saccade::models
