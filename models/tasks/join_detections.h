// Joins the detections of a picture's tiles; see MergeTiles(). Does not include LibTorch.
#pragma once

#include <vector>

#include "models/tasks/result.h"
#include "models/tasks/tiles.h"

namespace saccade::models {

// `parts` are the tiles' detections in each tile's pixels, one for each of `tiles`.
Detections JoinDetections(std::vector<Detections> parts, const std::vector<Tile>& tiles, Size picture);

}  // namespace saccade::models
