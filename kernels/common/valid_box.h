// The valid positions of a sample and their coordinates.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/common/feature_map.h"

namespace saccade::kernels {

// The box of one sample's valid positions, which are numbered in row-major order within it.
class ValidBox {
 public:
  ValidBox(const Extent& extent, int64_t sample) {
    for (int d = 0; d < kMaxSpatialDims; ++d) {
      full_[d] = size_[d] = extent.size[d];
      const int given = d - (kMaxSpatialDims - extent.spatial_dims);
      if (extent.valid != nullptr && given >= 0) {
        size_[d] = std::clamp<int64_t>(extent.valid[sample * extent.spatial_dims + given], 0, full_[d]);
      }
    }
  }

  int64_t size(int dim) const { return size_[dim]; }
  int64_t positions() const { return size_[0] * size_[1] * size_[2]; }
  bool whole() const { return std::equal(size_, size_ + kMaxSpatialDims, full_); }

  // Calls visit(plane, row, column, offset from begin, length) for each stretch of positions along the last
  // dimension among the valid ones numbered [begin, end).
  template <typename Visit>
  void ForRows(int64_t begin, int64_t end, const Visit& visit) const {
    for (int64_t i = begin; i < end;) {
      const int64_t column = i % size_[2];
      const int64_t row = i / size_[2];
      const int64_t length = std::min(size_[2] - column, end - i);
      visit(row / size_[1], row % size_[1], column, i - begin, length);
      i += length;
    }
  }

  // Same for memory in which all positions of the map are contiguous: visit(position, offset from begin,
  // length).
  template <typename Visit>
  void ForRuns(int64_t begin, int64_t end, const Visit& visit) const {
    ForRows(begin, end, [&](int64_t plane, int64_t row, int64_t column, int64_t offset, int64_t length) {
      visit((plane * full_[1] + row) * full_[2] + column, offset, length);
    });
  }

 private:
  int64_t full_[kMaxSpatialDims];
  int64_t size_[kMaxSpatialDims];
};

}  // namespace saccade::kernels
