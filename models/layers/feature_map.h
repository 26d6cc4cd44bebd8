// The feature maps of a batch, and which part of them is picture.
#pragma once

#include <ATen/core/Tensor.h>

#include "models/layers/extents.h"

namespace saccade::models {

struct FeatureMap {
  at::Tensor values;  // [B, C, H, W], channels-last
  Extents extents;
};

}  // namespace saccade::models
