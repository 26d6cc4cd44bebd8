// Converts vectors of boxes and numbers to tensors, and back.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "models/networks/mask_rcnn/box.h"

namespace saccade::models {

// Returns a copy of shape [N], or [N, 4] for boxes.
at::Tensor AsTensor(const std::vector<float>& values);
at::Tensor AsTensor(const std::vector<int64_t>& values);
at::Tensor AsTensor(const std::vector<Box>& boxes);

// `boxes` is a contiguous float32 [N, 4].
std::vector<Box> AsBoxes(const at::Tensor& boxes);

}  // namespace saccade::models
