// Converts vectors of boxes to tensors, and back.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "models/networks/mask_rcnn/box.h"
#include "models/networks/tensors.h"

namespace saccade::models {

// Returns a copy of shape [N, 4].
at::Tensor AsTensor(const std::vector<Box>& boxes);

// `boxes` is a contiguous float32 [N, 4].
std::vector<Box> AsBoxes(const at::Tensor& boxes);

}  // namespace saccade::models
