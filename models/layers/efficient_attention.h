// An efficient attention module with weights, over pictures, volumes and clips.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>

#include "models/weights/weights.h"

namespace saccade::models {

// Immutable; calls may run at once on several threads.
class EfficientAttention {
 public:
  // Of NAME.query, key and value, each a weight and a bias, and NAME.out if there is one: without it the
  // values have the map's channels. `normalization` is a kind of kernels/efficient_attention.
  EfficientAttention(const TensorMap& tensors, const std::string& name, int64_t heads,
                     std::string normalization);

  // x plus what its own samples give. `valid`, int64 [B, spatial dimensions] on x's device, says how far each
  // sample's map reaches from its first corner: what lies beyond is not looked at, and zero in the result.
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

// What the log says of a module that the weights lack, in networks that then leave it out.
std::string AbsentNote(const std::string& module);

}  // namespace saccade::models
