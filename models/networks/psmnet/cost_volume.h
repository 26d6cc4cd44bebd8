// What is matched: the left picture's features beside the right picture's, shifted by each disparity.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace saccade::models {

// left and right are [1, C, H, W], channels-last. The volume is [1, 2 C, planes, H, W],
// channels-last: left at (y, x) and right at (y, x - d), both zero where x < d. REQUIRES planes >= 1.
at::Tensor ConcatenationVolume(const at::Tensor& left, const at::Tensor& right, int64_t planes);

}  // namespace saccade::models
