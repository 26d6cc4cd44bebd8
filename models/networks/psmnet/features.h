// Computes features for matching from pictures, at a quarter of their size.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "models/layers/convolution.h"
#include "models/networks/psmnet/table.h"
#include "models/weights/weights.h"

namespace saccade::models {

// Two 3x3 convolutions and a shortcut.
class PsmnetResidual {
 public:
  PsmnetResidual(const PsmnetBlock& block, const TensorMap& tensors);

  // Overwrites x if the shortcut is x itself. REQUIRES: in that case x is not used elsewhere.
  at::Tensor operator()(at::Tensor x) const;

 private:
  Convolution first_;
  Convolution second_;
  std::optional<Convolution> shortcut_;
};

// Immutable and thread-safe.
class PsmnetFeatures {
 public:
  PsmnetFeatures(const PsmnetOptions& options, const TensorMap& tensors);

  // `pictures` is [B, 3, H, W], channels-last, with sides that are multiples of 4; the features are [B,
  // channels, H / 4, W / 4], channels-last.
  at::Tensor operator()(at::Tensor pictures) const;

 private:
  // Returns the map's means over the branch's squares, convolved and upsampled to the map's size.
  at::Tensor Pooled(const at::Tensor& map, size_t branch) const;

  bool align_corners_;
  std::vector<Convolution> first_;
  std::vector<std::vector<PsmnetResidual>> stages_;
  std::vector<Convolution> branches_;
  std::vector<Convolution> last_;
};

}  // namespace saccade::models
