// The valid positions of a sample, on the device; the counterpart of common/valid_box.h.
#pragma once

#include "kernels/common/device.h"
#include "kernels/common/feature_map.h"

namespace saccade::kernels {

// The box of one sample's valid positions, numbered in row-major order within it. Sizes and numbers within
// one sample are 32-bit: 64-bit division is many times slower on a GPU, and takes more registers.
struct DeviceBox {
  __device__ DeviceBox(const Extent& extent, int64_t sample) {
    for (int d = 0; d < kMaxSpatialDims; ++d) {
      full[d] = size[d] = static_cast<int>(extent.size[d]);
      const int given = d - (kMaxSpatialDims - extent.spatial_dims);
      if (extent.valid == nullptr || given < 0) continue;
      const int64_t valid = extent.valid[sample * extent.spatial_dims + given];
      size[d] = valid < 0 ? 0 : valid < full[d] ? static_cast<int>(valid) : full[d];
    }
  }

  __device__ int Positions() const { return size[0] * size[1] * size[2]; }

  // Returns the position in the whole extent of the valid position `number`.
  __device__ int PositionOf(int number) const {
    const int row = number / size[2];
    return (row / size[1] * full[1] + row % size[1]) * full[2] + number % size[2];
  }
  // Returns the number of a position of the whole extent, or -1 if it is padding.
  __device__ int NumberOf(int position) const {
    const int x = position % full[2];
    const int y = position / full[2] % full[1];
    const int z = position / full[2] / full[1];
    if (x >= size[2] || y >= size[1] || z >= size[0]) return -1;
    return (z * size[1] + y) * size[2] + x;
  }
  // Returns the memory offset of the valid position `number`, with these strides.
  __device__ int64_t OffsetOf(int number, const int64_t (&stride)[kMaxSpatialDims]) const {
    if (size[1] == 1 && size[0] == 1) return number * stride[2];
    const int row = number / size[2];
    return number % size[2] * stride[2] + row % size[1] * stride[1] + row / size[1] * stride[0];
  }

  int full[kMaxSpatialDims];
  int size[kMaxSpatialDims];
};

}  // namespace saccade::kernels
