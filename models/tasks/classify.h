// A classifier's Run, but for its network: checks before, results after.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "models/description.h"
#include "models/model.h"
#include "models/tasks/result.h"

namespace saccade::models {

// Calls `network` once, without gradients, on the whole batch; it returns float32 [B, classes, 1, 1]. A
// picture with a value that is not finite, before or after, becomes a Failure of its own. Throws c10::Error
// as CheckBatch does.
std::vector<TaskResult> Classify(const Description& description, const Batch& batch,
                                 const std::function<at::Tensor(const Batch&)>& network);

}  // namespace saccade::models
