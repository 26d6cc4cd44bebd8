// Efficient attention over a volume, as EA-PSMNet has it behind its last hourglass.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

#include "models/layers/extents.h"
#include "models/networks/psmnet/options.h"
#include "models/weights/weights.h"

namespace saccade::models {

// Immutable; calls may run at once on several threads.
class VolumeAttention {
 public:
  // The tensors NAME.query, key, value and, if it is reprojected, out.
  VolumeAttention(const TensorMap& tensors, const std::string& name, const PsmnetOptions& options);

  // x + attention(x) over the part of the volume [1, C, D, H, W] that is picture, whose first extent says how
  // much of H x W that is; zero beyond.
  at::Tensor operator()(const at::Tensor& x, const Extents& picture) const;

 private:
  struct Projection {
    at::Tensor weight, bias;
  };
  static Projection Load(const TensorMap& tensors, const std::string& name);

  Projection query_, key_, value_;
  std::optional<at::Tensor> out_weight_, out_bias_;
  int64_t heads_;
  std::string normalization_;
};

}  // namespace saccade::models
