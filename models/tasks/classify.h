// A classifier's Run, but for its network: checks before, results after.
#pragma once

#include <vector>

#include "models/description.h"
#include "models/layers/recorded.h"
#include "models/model.h"
#include "models/tasks/result.h"

namespace saccade::models {

// Runs `network` once, without gradients, on the whole batch; its one map is [B, classes, 1, 1]. A
// picture with a value that is not finite, before or after, becomes a Failure of its own. Throws c10::Error
// as CheckBatch does.
std::vector<TaskResult> Classify(const Description& description, const Batch& batch, const Recorded& network);

}  // namespace saccade::models
