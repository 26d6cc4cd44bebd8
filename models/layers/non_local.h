// A non-local block with its weights: every position attends to every position. It has the tensors of
// EfficientAttention, which its paper compares with it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>

#include "kernels/attention/attention.h"
#include "models/weights/weights.h"

namespace saccade::models {

// Immutable and thread-safe.
class NonLocal {
 public:
  // Loads NAME.query, key, value and out, each a weight and a bias. If `softmax` is false, similarities are
  // divided by the number of positions.
  NonLocal(const TensorMap& tensors, const std::string& name, int64_t heads, bool softmax);

  // As EfficientAttention's; x is [B, C, H, W].
  at::Tensor operator()(const at::Tensor& x, const std::optional<at::Tensor>& valid = std::nullopt) const;

 private:
  std::string name_;
  kernels::AttentionWeights weights_;
  int64_t heads_;
  const char* kind_;  // of kernels/attention
};

}  // namespace saccade::models
