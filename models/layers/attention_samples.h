// Helpers for making attention maps of one sample.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/api/attention_probe.h"

namespace saccade::models {

// Returns the valid part of a sample, float32 [C, *spatial].
at::Tensor Seen(const at::Tensor& x, int64_t sample, const std::optional<at::Tensor>& valid);

// Returns weight x (+ bias), x being [C, N]; returns x itself if there is no weight.
at::Tensor Transformed(const at::Tensor& x, const std::optional<at::Tensor>& weight,
                       const std::optional<at::Tensor>& bias = std::nullopt);

// Copies `maps`, [N, height, width] on any device, to N named AttentionMaps.
std::vector<AttentionMap> AsMaps(const at::Tensor& maps, const std::function<std::string(int64_t)>& name);

// Returns "head 0" for head 0, and so on.
std::string HeadName(int64_t head);

}  // namespace saccade::models
