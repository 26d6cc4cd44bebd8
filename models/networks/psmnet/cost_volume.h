// Makes the volume for stereo matching: the left picture's features beside the right's, shifted by each
// disparity.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace saccade::models {

// `left` and `right` are [1, C, H, W], channels-last. Returns [1, 2 C, planes, H, W], channels-last: at (d,
// y, x), left at (y, x) and right at (y, x - d), both zero where x < d. REQUIRES: planes >= 1.
at::Tensor ConcatenationVolume(const at::Tensor& left, const at::Tensor& right, int64_t planes);

}  // namespace saccade::models
