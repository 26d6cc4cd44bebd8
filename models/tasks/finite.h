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

// The same for any floating type and device. Blocks until a GPU has computed the values, and reads them once
// if they are below about 1e30.
bool AllFiniteOnDevice(const at::Tensor& values);

// Returns for each item [B, ...] whether its values, float32 in any layout, are finite: bool [B] on their
// device, for which it does not wait. Reads the values once.
at::Tensor FiniteItems(const at::Tensor& values);

// The result for a picture whose input is not finite.
Failure NotFiniteInput();
// The result for a picture whose input is finite, but not `output` ("a logit", "a box").
Failure NotFiniteOutput(const std::string& architecture, const std::string& output);

}  // namespace saccade::models
