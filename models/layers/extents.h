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

  // The same, kept in `valid` as well, int64 [B, 2] on the device of the maps: what follows from it is
  // computed there, so that a recorded pass can be replayed with other extents.
  Extents With(at::Tensor valid) const;
  // Whether sizes() may be those of other pictures, and only AsValid() counts.
  bool kept_on_device() const { return valid_.defined(); }
  // What these extents of a map are when those of the pictures it was made of are `pictures`.
  Extents Again(const Extents& pictures) const;

  // Of the map that the window makes of these.
  Extents After(const Window& window) const;

  const std::vector<Size>& sizes() const { return sizes_; }
  Size operator[](int64_t sample) const { return sizes_.at(static_cast<size_t>(sample)); }

  // int64 [B, 2] on that device, as operators take it.
  at::Tensor AsValid(const at::Device& device = at::kCPU) const;

  // Zeroes what lies beyond each sample's extent, in place; x is [B, C, H, W].
  void ZeroBeyond(at::Tensor& x) const;

 private:
  std::vector<Size> sizes_;
  std::vector<Window> windows_;  // that led here from the pictures; those that change nothing are left out
  at::Tensor valid_;             // sizes_, where they are kept on a device
};

}  // namespace saccade::models
