#include "models/networks/unet3d/tiles.h"

#include <algorithm>

namespace saccade::models {
namespace {

int64_t DivideUp(int64_t value, int64_t divisor) { return (value + divisor - 1) / divisor; }

}  // namespace

Part Part::From(const Part& outer) const {
  Part part = *this;
  for (size_t axis = 0; axis < 3; ++axis) part.begin[axis] -= outer.begin[axis];
  return part;
}

Part Part::Over(const VolumeSides& step) const {
  Part part = *this;
  for (size_t axis = 0; axis < 3; ++axis) {
    part.begin[axis] /= step[axis];
    part.size[axis] /= step[axis];
  }
  return part;
}

Tiling::Tiling(const VolumeSides& sides, const VolumeSides& longest, int64_t multiple) : sides_(sides) {
  for (size_t axis = 0; axis < 3; ++axis) {
    const int64_t side = sides[axis];
    const int64_t max = longest[axis] == 0 ? side : DivideUp(longest[axis], multiple) * multiple;
    // Uses as few cores as possible, of about the same length.
    const int64_t even = DivideUp(side, DivideUp(side, max));
    core_[axis] = std::min(side, DivideUp(even, multiple) * multiple);
    counts_[axis] = DivideUp(side, core_[axis]);
  }
}

Part Tiling::Core(int64_t index) const {
  Part core;
  for (size_t axis = 3; axis-- > 0;) {
    core.begin[axis] = index % counts_[axis] * core_[axis];
    core.size[axis] = std::min(core_[axis], sides_[axis] - core.begin[axis]);
    index /= counts_[axis];
  }
  return core;
}

Part Tiling::Around(const Part& core, int64_t halo) const {
  Part window{.begin = {}, .size = WindowSize(halo)};
  for (size_t axis = 0; axis < 3; ++axis) {
    window.begin[axis] = std::clamp<int64_t>(core.begin[axis] - halo, 0, sides_[axis] - window.size[axis]);
  }
  return window;
}

int64_t Tiling::Computed(int64_t halo) const { return count() * Positions(WindowSize(halo)); }

VolumeSides Tiling::WindowSize(int64_t halo) const {
  VolumeSides size;
  for (size_t axis = 0; axis < 3; ++axis) size[axis] = std::min(core_[axis] + 2 * halo, sides_[axis]);
  return size;
}

}  // namespace saccade::models
