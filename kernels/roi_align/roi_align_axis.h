// One axis of one region: the positions of its samples, and the weight of each pixel in each bin. The average
// of bilinear samples on a grid is a product of one weighted sum per axis, so pooling needs nothing else.
// C++17, for the CPU and for nvcc. Coordinates are rounded step by step, without fused multiply-add, so that
// CPU, CUDA and torchvision's CPU code agree on the last bit of a sample's position.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/roi_align/roi_align_problem.h"

#if defined(__CUDACC__)
#define SACCADE_HOST_DEVICE __host__ __device__
#else
#define SACCADE_HOST_DEVICE
#endif

namespace saccade::kernels {

// Maximum number of samples along one axis of a bin. More are an error on the CPU, and are cut off on CUDA.
inline constexpr int64_t kMaxRoiGrid = 1 << 16;

// Returns the rounded product; prevents the compiler from fusing it with an addition.
template <typename A>
SACCADE_HOST_DEVICE inline A RoundedProduct(A a, A b) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(A) == sizeof(float)) {
    return __fmul_rn(a, b);
  } else {
    return __dmul_rn(a, b);
  }
#else
  const volatile A product = a * b;
  return product;
#endif
}

template <typename A>
struct RoiAxis {
  A start = 0;       // start of the region, in pixels
  A bin = 0;         // size of a bin, in pixels
  int64_t grid = 0;  // samples per bin
  int64_t size = 0;  // size of the map, in pixels

  // Returns the position of a bin's sample, which may be outside the map.
  SACCADE_HOST_DEVICE A Sample(int64_t of_bin, int64_t sample) const {
    const A middle = RoundedProduct(static_cast<A>(sample) + static_cast<A>(0.5), bin);
    return start + RoundedProduct(static_cast<A>(of_bin), bin) + middle / static_cast<A>(grid);
  }

  // Returns the maximum number of pixels that a bin can depend on.
  SACCADE_HOST_DEVICE int64_t MaxTaps() const { return 2 * grid < size ? 2 * grid : size; }

  // Calls visit(pixel, weight) for each pixel that a bin depends on, in increasing order.
  template <typename Visit>
  SACCADE_HOST_DEVICE void ForTaps(int64_t of_bin, const Visit& visit) const {
    if (size <= 0) return;
    const auto emit = [&](int64_t pixel, A weight) {
      if (weight != 0) visit(pixel, weight / static_cast<A>(grid));
    };
    int64_t low = -2;
    A low_weight = 0;
    A high_weight = 0;  // of pixel low + 1
    for (int64_t i = 0; i < grid; ++i) {
      A at = Sample(of_bin, bin >= 0 ? i : grid - 1 - i);
      if (!(at >= -1 && at <= static_cast<A>(size))) continue;
      if (at < 0) at = 0;
      int64_t pixel = static_cast<int64_t>(at);
      A beyond = 0;
      if (pixel >= size - 1) {
        pixel = size - 1;
      } else {
        beyond = at - static_cast<A>(pixel);
      }
      if (pixel != low) {
        emit(low, low_weight);
        if (pixel != low + 1) emit(low + 1, high_weight);
        low_weight = pixel == low + 1 ? high_weight : A{0};
        high_weight = 0;
        low = pixel;
      }
      low_weight += 1 - beyond;
      high_weight += beyond;
    }
    emit(low, low_weight);
    emit(low + 1, high_weight);
  }
};

// Returns the axis of the region [from, to], in units of the region's coordinates.
template <typename A>
SACCADE_HOST_DEVICE inline RoiAxis<A> RoiAxisBetween(A from, A to, A scale, bool aligned, int64_t bins,
                                                     int64_t sampling_ratio, int64_t size) {
  const A shift = aligned ? static_cast<A>(0.5) : A{0};
  RoiAxis<A> axis;
  axis.size = size;
  axis.start = RoundedProduct(from, scale) - shift;
  A extent = RoundedProduct(to, scale) - shift - axis.start;
  if (!aligned && !(extent >= 1)) extent = 1;
  axis.bin = extent / static_cast<A>(bins);
  const A samples = std::ceil(axis.bin);
  axis.grid = sampling_ratio > 0                           ? sampling_ratio
              : !(samples > 0)                             ? 0
              : samples >= static_cast<A>(kMaxRoiGrid + 1) ? kMaxRoiGrid + 1
                                                           : static_cast<int64_t>(samples);
  return axis;
}

// Returns the valid size of a sample's map along one axis.
SACCADE_HOST_DEVICE inline int64_t RoiMapSize(const Extent& extent, int64_t sample, int axis) {
  const int given = axis - (kMaxSpatialDims - extent.spatial_dims);
  if (extent.valid == nullptr || given < 0) return extent.size[axis];
  const int64_t size = extent.valid[sample * extent.spatial_dims + given];
  return size < 0 ? 0 : size < extent.size[axis] ? size : extent.size[axis];
}

SACCADE_HOST_DEVICE inline int64_t NumbersPerRegion(const RoiAlignProblem& p) { return p.temporal ? 3 : 5; }

// Returns axis 0, 1 or 2 of a region. REQUIRES: its sample and level exist.
template <typename A>
SACCADE_HOST_DEVICE inline RoiAxis<A> RoiAxisOf(const RoiAlignProblem& p, const RoiAlignLevel& level,
                                                int64_t region, int axis) {
  const A* roi = static_cast<const A*>(p.rois) + region * NumbersPerRegion(p);
  const int64_t size = RoiMapSize(level.extent, static_cast<int64_t>(roi[0]), axis);
  const auto scale = static_cast<A>(level.scale);
  if (p.temporal && axis == 0) {
    return RoiAxisBetween(roi[1], roi[2], scale, p.aligned, p.pooled[0], p.sampling_ratio, size);
  }
  if (p.temporal || axis == 0) {
    // The whole map: pixel i covers [i, i + 1], so a whole number of pixels per bin gives their plain
    // average.
    return RoiAxisBetween(A{0}, static_cast<A>(size), A{1}, true, p.pooled[axis], p.sampling_ratio, size);
  }
  return RoiAxisBetween(roi[3 - axis], roi[5 - axis], scale, p.aligned, p.pooled[axis], p.sampling_ratio,
                        size);
}

}  // namespace saccade::kernels
