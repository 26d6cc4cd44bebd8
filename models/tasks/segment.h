// A segmenter's Run, but for its network: checks before, label maps after.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "models/description.h"
#include "models/layers/extents.h"
#include "models/model.h"
#include "models/tasks/result.h"

namespace saccade::models {

// What a network says of a batch.
struct ScoreMaps {
  at::Tensor scores;   // float32 [B, classes, H, W]
  Extents extents;     // of each picture's own positions among them
  int64_t stride = 1;  // position i is the network's opinion on pixel stride * i of its input
};

// The label map of one picture as it was sent. `scores` are its own, float32 [h, w, classes], contiguous and
// finite. At each pixel's centre they are taken bilinearly, clamped to the map, and the highest wins; of
// equals, the class that comes first. Beside the result it needs memory for a few rows.
Segmentation LabelMap(const at::Tensor& scores, int64_t stride, const Placement& placement);

// Calls `network` once, without gradients, on the whole batch. A picture with a value that is not finite,
// before or after, becomes a Failure of its own. Throws c10::Error as CheckBatch does.
std::vector<TaskResult> Segment(const Description& description, const Batch& batch,
                                const std::function<ScoreMaps(const Batch&)>& network);

}  // namespace saccade::models
