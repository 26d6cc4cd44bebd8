// An efficient attention module with its weights, for pictures, volumes and clips.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>

#include "models/weights/weights.h"

namespace saccade::models {

// Immutable and thread-safe.
class EfficientAttention {
 public:
  // Loads NAME.query, key and value, each a weight and a bias, and NAME.out if there is one: without it the
  // values have as many channels as the map. `normalization` is a kind of kernels/efficient_attention.
  EfficientAttention(const TensorMap& tensors, const std::string& name, int64_t heads,
                     std::string normalization);

  // Returns x plus the attention's result; a sample's result depends on that sample alone. `valid`, int64 [B,
  // spatial dimensions] on x's device, is the extent of each sample's map from its first corner. Positions
  // beyond it are ignored, and zero in the result.
  at::Tensor operator()(const at::Tensor& x, const std::optional<at::Tensor>& valid = std::nullopt) const;

 private:
  struct Projection {
    at::Tensor weight, bias;
  };
  static Projection Load(const TensorMap& tensors, const std::string& name);

  std::string name_;
  Projection query_, key_, value_;
  std::optional<at::Tensor> out_weight_, out_bias_;
  int64_t heads_;
  std::string normalization_;
};

// The log message for a module that has no tensors in the weights, for networks that then omit it.
std::string AbsentNote(const std::string& module);

}  // namespace saccade::models
