// The Run() of a stereo network, except the network: checks the batch, and makes the disparities.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "models/api/description.h"
#include "models/api/model.h"
#include "models/tasks/result.h"

namespace saccade::models {

// Computes disparities, in pixels, of a pair [2, 3, H, W], left first, whose top left part of size `scaled`
// is picture. Returns float32, at least as large as the picture, from the same top left.
using StereoNetwork = std::function<at::Tensor(const at::Tensor& pair, Size scaled)>;

// Calls `network` once per pair, without gradients: memory is that of one pair, and a pair's result cannot
// depend on the others. A pair whose pixels or disparities are not finite gets a Failure; the others are not
// affected. Throws c10::Error as CheckBatch() does.
std::vector<TaskResult> MatchStereo(const Description& description, const Batch& batch,
                                    const StereoNetwork& network);

// Converts disparities of the scaled picture, [H, W] or more, to the picture as it was sent: resizes the map
// (bilinear, between pixel centres), and multiplies the values by the ratio of the widths.
Disparity DisparityAsSent(const at::Tensor& disparities, const Placement& placement);

// Returns a map of the whole bucket, float32 [h, w] of any size, as one of the picture as it was sent:
// resized between the centres of its cells, with the same values; what is below 0 becomes 0. kBicubic is
// PyTorch's without antialiasing (a = -0.75), which overshoots beside edges.
at::Tensor DepthAsSent(const at::Tensor& depth, const Placement& placement, Interpolation filter);

}  // namespace saccade::models
