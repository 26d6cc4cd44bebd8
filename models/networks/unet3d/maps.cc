#include "models/networks/unet3d/maps.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/max_pool3d.h>
#include <ATen/ops/upsample_nearest3d.h>

#include "models/device/transfer.h"

namespace saccade::models {

VolumeSides SidesOf(const at::Tensor& map) { return {map.size(-3), map.size(-2), map.size(-1)}; }

at::Tensor NewMap(int64_t channels, const VolumeSides& sides, const Target& target) {
  return at::empty({1, channels, sides[0], sides[1], sides[2]},
                   at::TensorOptions(TypeOf(target))
                       .device(DeviceOf(target))
                       .memory_format(at::MemoryFormat::ChannelsLast3d));
}

at::Tensor View(const at::Tensor& map, const Part& part) {
  at::Tensor view = map;
  for (size_t axis = 0; axis < 3; ++axis) {
    view = view.narrow(static_cast<int64_t>(axis) - 3, part.begin[axis], part.size[axis]);
  }
  return view;
}

at::Tensor TakenPart(const at::Tensor& map, const Part& part, const Target& target) {
  // contiguous() would keep strides for one-channel maps that convolutions mistake for channels-first.
  return NewMap(map.size(1), part.size, target).copy_(View(map, part));
}

at::Tensor Pooled(const at::Tensor& map, const VolumeSides& step) { return at::max_pool3d(map, step, step); }

at::Tensor Joined(const at::Tensor& skip, const at::Tensor& coarse) {
  return at::cat({skip, at::upsample_nearest3d(coarse, SidesOf(skip))}, 1);
}

}  // namespace saccade::models
