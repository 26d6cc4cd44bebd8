#include "models/layers/extents.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/where.h>

#include "models/device/pinned.h"
#include "models/layers/quantized_map.h"

namespace saccade::models {
namespace {

// Window::After for every entry, computed on the device of `sizes`.
at::Tensor After(const Window& window, const at::Tensor& sizes) {
  const int64_t margin = 2 * window.padding - window.dilation * (window.kernel - 1) - 1;
  if (!window.ceil) return sizes.add(margin).div(window.stride, "floor").add(1).clamp_min(0);
  const at::Tensor after = sizes.add(margin + window.stride - 1).div(window.stride, "floor").add(1);
  const at::Tensor begins_outside = after.sub(1).mul(window.stride).ge(sizes.add(window.padding));
  return at::where(begins_outside, after.sub(1), after);
}

// A mask [B, 1, count] that is true at positions below each sample's size; `sizes` is [B].
at::Tensor Below(const at::Tensor& sizes, int64_t count) {
  return at::arange(count, sizes.options()).view({1, 1, count}).lt(sizes.view({-1, 1, 1}));
}

}  // namespace

Extents Extents::Of(const std::vector<Placement>& placements) {
  std::vector<Size> sizes;
  sizes.reserve(placements.size());
  for (const Placement& placement : placements) sizes.push_back(placement.scaled);
  return Extents(std::move(sizes));
}

Extents Extents::With(at::Tensor valid) const {
  Extents extents = *this;
  extents.valid_ = std::move(valid);
  return extents;
}

Extents Extents::Again(const Extents& pictures) const {
  Extents extents = pictures;
  for (const Window& window : windows_) extents = extents.After(window);
  return extents;
}

Extents Extents::After(const Window& window) const {
  if (window.KeepsSize()) return *this;
  Extents extents;
  extents.sizes_.reserve(sizes_.size());
  for (const Size size : sizes_) extents.sizes_.push_back(window.After(size));
  extents.windows_ = windows_;
  extents.windows_.push_back(window);
  if (valid_.defined()) extents.valid_ = models::After(window, valid_);
  return extents;
}

at::Tensor Extents::AsValid(const at::Device& device) const {
  if (valid_.defined()) return valid_;
  const at::Tensor valid = at::empty({static_cast<int64_t>(sizes_.size()), 2}, at::kLong);
  auto* out = valid.mutable_data_ptr<int64_t>();
  for (const Size size : sizes_) {
    *out++ = size.height;
    *out++ = size.width;
  }
  return SmallSent(valid, device);
}

void Extents::ZeroBeyond(at::Tensor& map) const {
  if (!map.is_quantized()) return FillBeyond(map, 0);
  // In 8 bits the byte `zero` is the number 0.
  at::Tensor bytes = BytesOf(map);
  FillBeyond(bytes, map.q_zero_point());
}

void Extents::FillBeyond(at::Tensor& map, const at::Scalar& value) const {
  if (valid_.defined()) {
    const at::Tensor rows = Below(valid_.select(1, 0), map.size(2)).view({-1, 1, map.size(2), 1});
    const at::Tensor columns = Below(valid_.select(1, 1), map.size(3)).view({-1, 1, 1, map.size(3)});
    map.masked_fill_(rows.logical_and(columns).logical_not(), value);
    return;
  }
  for (int64_t i = 0; i < map.size(0); ++i) {
    const Size size = (*this)[i];
    const int64_t below = map.size(2) - size.height;
    const int64_t right = map.size(3) - size.width;
    at::Tensor sample = map[i];
    if (below > 0) sample.narrow(1, size.height, below).fill_(value);
    if (right > 0) sample.narrow(2, size.width, right).fill_(value);
  }
}

}  // namespace saccade::models
