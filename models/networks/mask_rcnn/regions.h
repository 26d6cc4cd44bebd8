// Pools regions from one picture's features.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "models/layers/feature_map.h"

namespace saccade::models {

// The levels fpn1 to fpn4 of one picture.
struct RegionFeatures {
  std::vector<at::Tensor> levels;  // [1, C, H, W], channels-last
  std::optional<at::Tensor>
      valid;  // int64 [levels, 1, 2], only with the option `exact`: valid extent of each level
};

RegionFeatures FeaturesOf(const std::vector<FeatureMap>& levels, int64_t picture, bool exact);

// `boxes` is [K, 4] in the scaled picture. Returns [K, C, side, side], channels-last; each region is pooled
// from the level that suits its size.
at::Tensor Pool(const RegionFeatures& features, const at::Tensor& boxes, int64_t side);

}  // namespace saccade::models
