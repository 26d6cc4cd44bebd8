// A restoration network's Run, but for the network: checks before, values for whoever asked after.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "models/description.h"
#include "models/model.h"
#include "models/tasks/progress.h"
#include "models/tasks/result.h"

namespace saccade::models {

// A volume [D, H, W], contiguous, to what is restored of it: float32 [d, h, w] on the CPU. May throw
// Unwanted, as Progress does.
using RestorationNetwork =
    std::function<at::Tensor(const at::Tensor& volume, const Progress::Report& report)>;

// Calls `network` once a volume, without gradients: memory is that of one volume, and a volume's answer
// cannot depend on the others. A volume with a value that is not finite, before or after, and one that nobody
// wants any more become Failures of their own. Throws c10::Error as CheckBatch says.
std::vector<TaskResult> Restore(const Description& description, const Batch& batch,
                                const RestorationNetwork& network);

}  // namespace saccade::models
