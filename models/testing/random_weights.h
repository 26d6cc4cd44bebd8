// Random weights for tests, scaled so that signals neither vanish nor overflow.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "models/weights/weights.h"

namespace saccade::models::testing {

// Convolutions keep the signal's size, and the batch norms after attention divide by its sums over positions.
TensorMap RandomTensors(const std::vector<TensorSpec>& specs);

// Writes float32, contiguous tensors as a safetensors file. Throws std::runtime_error if it cannot be
// written.
void SaveSafetensors(const TensorMap& tensors, const std::string& path);

}  // namespace saccade::models::testing
