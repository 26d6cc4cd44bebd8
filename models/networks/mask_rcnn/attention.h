// An efficient attention module with weights.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "models/layers/feature_map.h"
#include "models/weights/weights.h"

namespace saccade::models {

// Immutable; calls may run at once on several threads.
class EfficientAttention {
 public:
  // Of the tensors NAME.query.weight and so on.
  EfficientAttention(const TensorMap& tensors, const std::string& name, int64_t heads, bool softmax);

  // x plus what its own pictures give; padding is neither looked at nor kept: it is zero in the result.
  at::Tensor operator()(const FeatureMap& x) const;

 private:
  struct Projection {
    at::Tensor weight, bias;
  };

  int64_t heads_;
  bool softmax_;
  Projection query_, key_, value_, out_;
};

}  // namespace saccade::models
