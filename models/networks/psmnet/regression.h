// From costs to disparities.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace saccade::models {

// `costs` is [D, H, W], contiguous: the larger, the likelier. They are enlarged `factor` times in
// every dimension, trilinear with corners aligned, and the softmax over the disparities weighs each of them:
// the result is [factor H, factor W]. The result is float32. On the CPU the enlarged
// costs exist for one line a thread at a time. A line with a
// value that is not finite gives some.
at::Tensor RegressDisparity(const at::Tensor& costs, int64_t factor);

}  // namespace saccade::models
