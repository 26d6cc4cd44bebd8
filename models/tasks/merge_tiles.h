// Merges the results of a picture's tiles into the result of the picture. Does not include LibTorch.
#pragma once

#include <vector>

#include "models/api/description.h"
#include "models/tasks/result.h"
#include "models/tasks/tiles.h"

namespace saccade::models {

// Whether results of this task can be merged: those of detection and segmentation.
bool CanMergeTiles(Task task);

// Returns the result of a picture of size `picture`. `tiles` are TilesOf() that picture; `results` are those
// of each tile, in its own pixels, all Detections or all Segmentation.
//
// Segmentation: a seam runs through the middle of what two neighbours share; each pixel has the class that
// the tile on its side of the seams found. So a map is that of the whole picture wherever a network looks at
// most half of the overlap far.
//
// Detections: two of the same class, from different tiles, are of one object if their boxes agree within
// what both tiles show (an IoU of at least 0.5 there). The object has the best score of its parts. Its box
// is that of the best part that no border between tiles cuts; if all are cut, the smallest one around the
// parts, and its mask is put together from theirs. What only touches the other tile's border stays as it is,
// so with an overlap of 0 nothing is merged. Keypoints are those of the part with the best score. Time and
// memory grow with the number of detections, not with its square: where more than 64 boxes of a class begin
// nearer to a box, along the side that two tiles share, than its other part does, some stay apart.
//
// REQUIRES: results.size() == tiles.size(), and at least one.
TaskResult MergeTiles(std::vector<TaskResult> results, const std::vector<Tile>& tiles, Size picture);

}  // namespace saccade::models
