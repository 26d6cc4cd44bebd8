// The Run() of a restoration network, except the network: checks the batch, and makes the results.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "models/api/description.h"
#include "models/api/model.h"
#include "models/tasks/progress.h"
#include "models/tasks/result.h"

namespace saccade::models {

// Restores a contiguous volume [D, H, W]; returns float32 [d, h, w] on the CPU. May throw Unwanted, as
// Progress does.
using RestorationNetwork =
    std::function<at::Tensor(const at::Tensor& volume, const Progress::Report& report)>;

// Calls `network` once per volume, without gradients: memory is that of one volume, and a volume's result
// cannot depend on the others. A volume whose input or output is not finite, or that is no longer needed,
// gets a Failure; the others are not affected. Throws c10::Error as CheckBatch() does.
std::vector<TaskResult> Restore(const Description& description, const Batch& batch,
                                const RestorationNetwork& network);

}  // namespace saccade::models
