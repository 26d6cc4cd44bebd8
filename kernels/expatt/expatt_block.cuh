// Block-level building blocks of the kernels in expatt.cuh: a product of two matrices whose entries are
// computed on the fly, and a sum.
#pragma once

#include "kernels/common/device.h"
#include "kernels/common/feature_map.h"

namespace saccade::kernels {

struct ExpattBlockSize {
  static constexpr int kThreads = 256;
  // Size of one block's part of a product.
  static constexpr int kRows = 32;
  static constexpr int kColumns = 64;
  static constexpr int kDepth = 32;
};

template <typename T>
__device__ float ExpattReadAt(const FeatureMap& map, int64_t sample, int64_t channel, int y, int x) {
  return ToFloat(static_cast<const T*>(map.data)[sample * map.batch_stride + channel * map.channel_stride +
                                                 y * map.spatial_stride[1] + x * map.spatial_stride[2]]);
}
template <typename T>
__device__ void ExpattWriteAt(const OutputMap& map, int64_t sample, int64_t channel, int y, int x,
                              float value) {
  FromFloat(value, static_cast<T*>(map.data) + sample * map.batch_stride + channel * map.channel_stride +
                       y * map.spatial_stride[1] + x * map.spatial_stride[2]);
}

// Calls store(row, column, sum over k of left(row, k) right(k, column), sum over k of right(k, column)) for
// this block's part of an m x n product. Calls left only for rows < m and right only for columns < n, both
// only for k < depth.
template <typename Left, typename Right, typename Store>
__device__ void ExpattBlockProduct(int row_block, int column_block, int m, int n, int depth, const Left& left,
                                   const Right& right, const Store& store) {
  constexpr int kRows = ExpattBlockSize::kRows;
  constexpr int kColumns = ExpattBlockSize::kColumns;
  constexpr int kDepth = ExpattBlockSize::kDepth;
  constexpr int kThreads = ExpattBlockSize::kThreads;
  constexpr int kSide = 16;  // threads form a square; each handles every 16th row and column
  SACCADE_SHARED(float, lefts, kDepth*(kRows + 1));
  SACCADE_SHARED(float, rights, kDepth* kColumns);
  const int thread = static_cast<int>(threadIdx.x);
  const int first_row = row_block * kRows;
  const int first_column = column_block * kColumns;
  float sums[kRows / kSide][kColumns / kSide] = {};
  float weights[kColumns / kSide] = {};
  for (int from = 0; from < depth; from += kDepth) {
    for (int i = thread; i < kRows * kDepth; i += kThreads) {
      const int k = from + i % kDepth;
      const int row = first_row + i / kDepth;
      lefts[i % kDepth * (kRows + 1) + i / kDepth] = row < m && k < depth ? left(row, k) : 0.0f;
    }
    for (int i = thread; i < kColumns * kDepth; i += kThreads) {
      const int k = from + i / kColumns;
      const int column = first_column + i % kColumns;
      rights[i] = column < n && k < depth ? right(k, column) : 0.0f;
    }
    __syncthreads();
    // Each part is summed separately, so that rounding grows with the number of parts.
    float parts[kRows / kSide][kColumns / kSide] = {};
    float part_weights[kColumns / kSide] = {};
    for (int k = 0; k < kDepth; ++k) {
      float values[kColumns / kSide];
      SACCADE_UNROLL
      for (int c = 0; c < kColumns / kSide; ++c) {
        values[c] = rights[k * kColumns + thread % kSide + c * kSide];
        part_weights[c] += values[c];
      }
      SACCADE_UNROLL
      for (int r = 0; r < kRows / kSide; ++r) {
        const float factor = lefts[k * (kRows + 1) + thread / kSide + r * kSide];
        SACCADE_UNROLL
        for (int c = 0; c < kColumns / kSide; ++c) parts[r][c] += factor * values[c];
      }
    }
    SACCADE_UNROLL
    for (int c = 0; c < kColumns / kSide; ++c) {
      weights[c] += part_weights[c];
      SACCADE_UNROLL
      for (int r = 0; r < kRows / kSide; ++r) sums[r][c] += parts[r][c];
    }
    __syncthreads();
  }
  SACCADE_UNROLL
  for (int r = 0; r < kRows / kSide; ++r) {
    SACCADE_UNROLL
    for (int c = 0; c < kColumns / kSide; ++c) {
      const int row = first_row + thread / kSide + r * kSide;
      const int column = first_column + thread % kSide + c * kSide;
      if (row < m && column < n) store(row, column, sums[r][c], weights[c]);
    }
  }
}

// Returns the sum of the block's values in every thread, added in a fixed order.
__device__ inline float ExpattBlockSum(float value) {
  SACCADE_SHARED(float, parts, ExpattBlockSize::kThreads);
  const int thread = static_cast<int>(threadIdx.x);
  parts[thread] = value;
  for (int half = ExpattBlockSize::kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (thread < half) parts[thread] += parts[thread + half];
  }
  __syncthreads();
  return parts[0];
}

}  // namespace saccade::kernels
