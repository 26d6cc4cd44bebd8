// A stereo network's Run, but for the network: checks before, disparities of the sent picture after.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "models/description.h"
#include "models/model.h"
#include "models/tasks/result.h"

namespace saccade::models {

// A pair [2, 3, H, W], left first, and how much of it is picture, to disparities in its pixels: float32, at
// least as large as the picture, from the same top left.
using StereoNetwork = std::function<at::Tensor(const at::Tensor& pair, Size scaled)>;

// Calls `network` once a pair, without gradients: memory is that of one pair, and a pair's answer cannot
// depend on the others. A pair with a value that is not finite, before or after, becomes a Failure of its
// own. Throws c10::Error as CheckBatch says.
std::vector<TaskResult> MatchStereo(const Description& description, const Batch& batch,
                                    const StereoNetwork& network);

// Disparities of the scaled picture, [H, W] or more, for the picture as it was sent: resized (bilinear,
// between pixel centres), and as much longer as the picture is wider.
Disparity DisparityAsSent(const at::Tensor& disparities, const Placement& placement);

}  // namespace saccade::models
