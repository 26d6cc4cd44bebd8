// One picture's features, from which regions are pooled.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "models/layers/feature_map.h"

namespace saccade::models {

// fpn1 to fpn4 of one picture.
struct RegionFeatures {
  std::vector<at::Tensor> levels;  // [1, C, H, W], channels-last
  std::optional<at::Tensor>
      valid;  // int64 [levels, 1, 2]: with the option `exact`, how much of each is picture
};

RegionFeatures FeaturesOf(const std::vector<FeatureMap>& levels, int64_t picture, bool exact);

// boxes [K, 4] in the scaled picture, to [K, C, side, side], channels-last: each from the level that suits
// its size.
at::Tensor Pool(const RegionFeatures& features, const at::Tensor& boxes, int64_t side);

}  // namespace saccade::models
