// Checks for values that are not finite.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <string>
#include <vector>

#include "models/tasks/result.h"

namespace saccade::models {

// `values` is float32 in any layout; a tensor that is not dense is copied.
bool AllFinite(const at::Tensor& values);
bool AllFinite(std::span<const float> values);

// Whether all values of each item are finite. Each of `maps` is [B, ...] of a floating type, on one device
// for all. Blocks until a GPU has computed them; reads each map once if its values are below about 1e30.
std::vector<bool> FiniteItems(const std::vector<at::Tensor>& maps);

// The result for a picture whose input is not finite.
Failure NotFiniteInput();
// The result for a picture whose input is finite, but not `output` ("a logit", "a box").
Failure NotFiniteOutput(const std::string& architecture, const std::string& output);

}  // namespace saccade::models
