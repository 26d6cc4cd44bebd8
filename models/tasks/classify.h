// The Run() of a classifier, except its network: checks the batch, and makes the results.
#pragma once

#include <vector>

#include "models/api/description.h"
#include "models/api/model.h"
#include "models/device/recorded.h"
#include "models/tasks/result.h"

namespace saccade::models {

// Runs `network` once, without gradients, on the whole batch; its only map is [B, classes, 1, 1]. A picture
// whose pixels or logits are not finite gets a Failure; the others are not affected. Throws c10::Error as
// CheckBatch() does.
std::vector<TaskResult> Classify(const Description& description, const Batch& batch, const Recorded& network);

}  // namespace saccade::models
