// Feature maps for the code that does not depend on LibTorch: pointers, strides and extents. C++17, because
// nvcc compiles it too.
#pragma once

#include <cstdint>

namespace saccade::kernels {

enum class Dtype { kFloat32, kFloat64, kBFloat16, kFloat16 };

// True if maps of this dtype are computed in double (float64); all others are computed in float.
inline bool IsDouble(Dtype dtype) { return dtype == Dtype::kFloat64; }

inline int64_t BytesOf(Dtype dtype) {
  return dtype == Dtype::kFloat64 ? 8 : dtype == Dtype::kFloat32 ? 4 : 2;
}

inline constexpr int kMaxSpatialDims = 3;

// A map [B, C, *spatial] in any layout; strides are in elements. Missing leading spatial dimensions have
// extent 1, so an image's rows are spatial_stride[1] apart and its columns spatial_stride[2].
template <typename Void>
struct BasicFeatureMap {
  Void* data = nullptr;
  int64_t batch_stride = 0;
  int64_t channel_stride = 0;
  int64_t spatial_stride[kMaxSpatialDims] = {0, 0, 0};
};
using FeatureMap = BasicFeatureMap<const void>;
using OutputMap = BasicFeatureMap<void>;

// The spatial extent that all maps of one call share.
struct Extent {
  int64_t size[kMaxSpatialDims] = {1, 1, 1};
  int spatial_dims = 2;
  // [B, spatial_dims] or null: the extent of each sample's valid positions, starting at the origin.
  const int64_t* valid = nullptr;
};

inline int64_t PositionsOf(const Extent& extent) { return extent.size[0] * extent.size[1] * extent.size[2]; }

}  // namespace saccade::kernels
