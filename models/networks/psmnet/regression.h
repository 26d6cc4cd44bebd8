// Computes disparities from costs.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace saccade::models {

// `costs` is [D, H, W], contiguous; a larger cost means a likelier disparity. They are upsampled `factor`
// times in each dimension (trilinear; `align_corners` as in torch.nn.functional.interpolate). The result,
// float32 [factor H, factor W], is the mean disparity weighted by their softmax. On the CPU each thread holds
// the upsampled costs of one line at a time. If costs are not finite, so are some of the results.
at::Tensor RegressDisparity(const at::Tensor& costs, int64_t factor, bool align_corners);

}  // namespace saccade::models
