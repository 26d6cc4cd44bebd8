// The Run() of a segmenter, except its network: checks the batch, and makes the label maps.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "models/api/description.h"
#include "models/api/model.h"
#include "models/layers/extents.h"
#include "models/tasks/result.h"

namespace saccade::models {

// A network's scores for a batch.
struct ScoreMaps {
  at::Tensor scores;   // float32 [B, classes, H, W]
  Extents extents;     // the valid positions of each picture
  int64_t stride = 1;  // position i is the score at pixel stride * i of the network's input
  // For each picture, whether its pixels are finite. Segment() checks them itself if it is empty.
  std::vector<bool> finite_pixels = {};
};

// Returns the label map of one picture as it was sent. `scores` are its valid ones, float32 [h, w, classes],
// contiguous and finite. At each pixel's centre they are interpolated bilinearly, clamped to the map, and the
// highest wins; of equal ones, the first class. Besides the result it needs memory for a few rows.
Segmentation LabelMap(const at::Tensor& scores, int64_t stride, const Placement& placement);

// The same for scores of the whole bucket, float32 [h, w, classes], whose positions are the centres of equal
// cells: what interpolate(mode="bilinear", align_corners=False) makes of them.
Segmentation LabelMapOfGrid(const at::Tensor& scores, const Placement& placement);

// Calls `network` once, without gradients, on the whole batch. A picture whose pixels or scores are not
// finite gets a Failure; the others are not affected. Throws c10::Error as CheckBatch() does.
std::vector<TaskResult> Segment(const Description& description, const Batch& batch,
                                const std::function<ScoreMaps(const Batch&)>& network);

}  // namespace saccade::models
