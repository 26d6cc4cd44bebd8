// From pictures to the features that are matched, at a quarter of their size.
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

  // Takes x's memory if the shortcut is x itself. REQUIRES: then nobody else reads x.
  at::Tensor operator()(at::Tensor x) const;

 private:
  Convolution first_;
  Convolution second_;
  std::optional<Convolution> shortcut_;
};

// Immutable; calls may run at once on several threads.
class PsmnetFeatures {
 public:
  PsmnetFeatures(const PsmnetOptions& options, const TensorMap& tensors);

  // pictures is [B, 3, H, W], channels-last, with sides that are multiples of 4; the features are
  // [B, channels, H / 4, W / 4], channels-last.
  at::Tensor operator()(at::Tensor pictures) const;

 private:
  // The map's means over squares, coarse to fine, each brought back to the map's size.
  at::Tensor Pooled(const at::Tensor& map, size_t branch) const;

  std::vector<Convolution> first_;
  std::vector<std::vector<PsmnetResidual>> stages_;
  std::vector<Convolution> branches_;
  std::vector<Convolution> last_;
};

}  // namespace saccade::models
