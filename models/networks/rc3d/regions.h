// What of a clip's map lies within segments.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "models/networks/rc3d/segment.h"

namespace saccade::models {

// The maxima over kBins bins of each segment, [K, C, 4, 2, 2], channels-last; map is [1, C, T, H, W] and
// there is at least one segment. A segment covers every step that it touches: from floor(start / 8) up to,
// without it, ceil(end / 8), and one step at least. Of these L steps bin i of 4 holds those from floor(i L /
// 4) up to, without it, ceil((i + 1) L / 4), so that bins share steps where L is no multiple of 4; height and
// width are divided likewise. (The rule of adaptive pooling.)
at::Tensor PoolSegments(const at::Tensor& map, const std::vector<Segment>& segments);

}  // namespace saccade::models
