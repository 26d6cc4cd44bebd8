// Numbers that are no numbers, found before they are served.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <string>

#include "models/tasks/result.h"

namespace saccade::models {

// Of float32 tensors in any layout; those that are not dense are copied.
bool AllFinite(const at::Tensor& values);
bool AllFinite(std::span<const float> values);

// What a picture whose input was not finite is answered with.
Failure NotFiniteInput();
// What a picture is answered with when the network's `output` for it ("a logit", "a box") is not finite.
Failure NotFiniteOutput(const std::string& architecture, const std::string& output);

}  // namespace saccade::models
