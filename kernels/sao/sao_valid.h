// Which positions of a sample take part, and where they lie.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/sao/sao_problem.h"

namespace saccade::kernels {

// The box of one sample's valid positions, which are numbered in row-major order within it.
class ValidBox {
 public:
  ValidBox(const SaoProblem& problem, int64_t sample) {
    for (int d = 0; d < kMaxSpatialDims; ++d) {
      full_[d] = size_[d] = problem.extent[d];
      const int given = d - (kMaxSpatialDims - problem.spatial_dims);
      if (problem.valid != nullptr && given >= 0) {
        size_[d] = std::clamp<int64_t>(problem.valid[sample * problem.spatial_dims + given], 0, full_[d]);
      }
    }
  }

  int64_t positions() const { return size_[0] * size_[1] * size_[2]; }
  bool whole() const { return std::equal(size_, size_ + kMaxSpatialDims, full_); }

  // Calls visit(position in the tensor, offset from begin, length) for each stretch of adjacent positions
  // among the valid ones numbered [begin, end).
  template <typename Visit>
  void ForRuns(int64_t begin, int64_t end, const Visit& visit) const {
    for (int64_t i = begin; i < end;) {
      const int64_t column = i % size_[2];
      const int64_t row = i / size_[2];
      const int64_t plane = row / size_[1];
      const int64_t length = std::min(size_[2] - column, end - i);
      visit((plane * full_[1] + row % size_[1]) * full_[2] + column, i - begin, length);
      i += length;
    }
  }

 private:
  int64_t full_[kMaxSpatialDims];
  int64_t size_[kMaxSpatialDims];
};

}  // namespace saccade::kernels
