// Which part of a batch's feature maps is picture, and which is padding.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "models/layers/window.h"
#include "models/placement.h"

namespace saccade::models {

// One extent per sample, from the top left.
class Extents {
 public:
  Extents() = default;
  explicit Extents(std::vector<Size> sizes) : sizes_(std::move(sizes)) {}
  // The scaled sizes of a batch's pictures.
  static Extents Of(const std::vector<Placement>& placements);

  // Of the map that the window makes of these.
  Extents After(const Window& window) const;

  const std::vector<Size>& sizes() const { return sizes_; }
  Size operator[](int64_t sample) const { return sizes_.at(static_cast<size_t>(sample)); }

  // int64 [B, 2], as operators take it.
  at::Tensor AsValid() const;

  // Zeroes what lies beyond each sample's extent, in place; x is [B, C, H, W].
  void ZeroBeyond(at::Tensor& x) const;

 private:
  std::vector<Size> sizes_;
};

}  // namespace saccade::models
