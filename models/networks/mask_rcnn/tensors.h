// Vectors of boxes and numbers as tensors, and back.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "models/networks/mask_rcnn/box.h"

namespace saccade::models {

// Copies, of shape [N], and [N, 4] for boxes.
at::Tensor AsTensor(const std::vector<float>& values);
at::Tensor AsTensor(const std::vector<int64_t>& values);
at::Tensor AsTensor(const std::vector<Box>& boxes);

// Of a contiguous float32 [N, 4].
std::vector<Box> AsBoxes(const at::Tensor& boxes);

}  // namespace saccade::models
