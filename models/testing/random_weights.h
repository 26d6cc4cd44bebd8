// Weights for the tests: random, but of such a size that signals neither vanish nor overflow.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "models/weights/weights.h"

namespace saccade::models::testing {

// Convolutions keep the signal's size, and the batch norms after attention divide by its sums over positions.
TensorMap RandomTensors(const std::vector<TensorSpec>& specs);

// Writes them as safetensors: float32, contiguous. Throws std::runtime_error if it cannot.
void SaveSafetensors(const TensorMap& tensors, const std::string& path);

}  // namespace saccade::models::testing
