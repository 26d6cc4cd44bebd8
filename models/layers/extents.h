// Distinguishes pictures from padding in a batch's feature maps.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "models/api/placement.h"
#include "models/layers/window.h"

namespace saccade::models {

// One extent per sample, measured from the top left.
class Extents {
 public:
  Extents() = default;
  explicit Extents(std::vector<Size> sizes) : sizes_(std::move(sizes)) {}
  // Returns the scaled sizes of a batch's pictures.
  static Extents Of(const std::vector<Placement>& placements);

  // Returns a copy that also keeps the extents in `valid`, int64 [B, 2] on the device of the maps. Extents
  // derived from it are computed on that device, so that a recorded pass can be replayed with other extents.
  Extents With(at::Tensor valid) const;
  // Whether AsValid() alone is current, and sizes() may be those of an earlier batch.
  bool kept_on_device() const { return valid_.defined(); }
  // Returns the extents of this map for a batch whose pictures have the extents `pictures`: applies the same
  // windows.
  Extents Again(const Extents& pictures) const;

  // Returns the extents of the map that the window makes from this one.
  Extents After(const Window& window) const;

  const std::vector<Size>& sizes() const { return sizes_; }
  Size operator[](int64_t sample) const { return sizes_.at(static_cast<size_t>(sample)); }

  // Returns int64 [B, 2] on `device`, as operators take it.
  at::Tensor AsValid(const at::Device& device = at::kCPU) const;

  // Zeroes what lies beyond each sample's extent, in place; x is [B, C, H, W].
  void ZeroBeyond(at::Tensor& map) const;
  // Fills it with `value` instead. The map is not quantized.
  void FillBeyond(at::Tensor& map, const at::Scalar& value) const;

 private:
  std::vector<Size> sizes_;
  std::vector<Window> windows_;  // applied to the pictures so far; those that keep sizes are left out
  at::Tensor valid_;             // sizes_ on a device; undefined unless With() was called
};

}  // namespace saccade::models
