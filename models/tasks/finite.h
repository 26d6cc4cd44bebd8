// Checks for values that are not finite.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <string>

#include "models/tasks/result.h"

namespace saccade::models {

// `values` is float32 in any layout; a tensor that is not dense is copied.
bool AllFinite(const at::Tensor& values);
bool AllFinite(std::span<const float> values);

// The result for a picture whose input is not finite.
Failure NotFiniteInput();
// The result for a picture whose `output` ("a logit", "a box") is not finite.
Failure NotFiniteOutput(const std::string& architecture, const std::string& output);

}  // namespace saccade::models
