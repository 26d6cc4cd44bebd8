#include "models/layers/extents.h"

#include <ATen/ops/empty.h>

namespace saccade::models {

Extents Extents::Of(const std::vector<Placement>& placements) {
  std::vector<Size> sizes;
  sizes.reserve(placements.size());
  for (const Placement& placement : placements) sizes.push_back(placement.scaled);
  return Extents(std::move(sizes));
}

Extents Extents::After(const Window& window) const {
  std::vector<Size> sizes;
  sizes.reserve(sizes_.size());
  for (const Size size : sizes_) sizes.push_back(window.After(size));
  return Extents(std::move(sizes));
}

at::Tensor Extents::AsValid() const {
  const at::Tensor valid = at::empty({static_cast<int64_t>(sizes_.size()), 2}, at::kLong);
  auto* out = valid.mutable_data_ptr<int64_t>();
  for (const Size size : sizes_) {
    *out++ = size.height;
    *out++ = size.width;
  }
  return valid;
}

void Extents::ZeroBeyond(at::Tensor& x) const {
  for (int64_t i = 0; i < x.size(0); ++i) {
    const Size size = (*this)[i];
    const int64_t below = x.size(2) - size.height;
    const int64_t right = x.size(3) - size.width;
    at::Tensor sample = x[i];
    if (below > 0) sample.narrow(1, size.height, below).zero_();
    if (right > 0) sample.narrow(2, size.width, right).zero_();
  }
}

}  // namespace saccade::models
