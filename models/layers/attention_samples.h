// What the makers of attention's maps have in common: of one sample each.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/attention_probe.h"

namespace saccade::models {

// The part of a sample that takes part: float32 [C, *spatial].
at::Tensor Seen(const at::Tensor& x, int64_t sample, const std::optional<at::Tensor>& valid);

// weight x (+ bias) of [C, N]; x itself without a weight.
at::Tensor Transformed(const at::Tensor& x, const std::optional<at::Tensor>& weight,
                       const std::optional<at::Tensor>& bias = std::nullopt);

// [N, height, width] of any device.
std::vector<AttentionMap> AsMaps(const at::Tensor& maps, const std::function<std::string(int64_t)>& name);

// "head 0".
std::string HeadName(int64_t head);

}  // namespace saccade::models
