// Converts vectors of numbers to tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace saccade::models {

// Returns a copy of shape [N].
at::Tensor AsTensor(const std::vector<float>& values);
at::Tensor AsTensor(const std::vector<int64_t>& values);

}  // namespace saccade::models
