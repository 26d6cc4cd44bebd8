// One call of the strided attention core (attend.cuh) as plain pointers, strides and numbers. C++17.
//
//   out[i][c] = sum over keys j of P[i][j] V[j][c], for every sample and head, where
// P = softmax over j of L, or L itself (softmax = false), and
//   L[i][j] = scale * sum over d of Q[i][d] K[j][d] + key_bias[j] + query_bias[i],
//   or scale times a matrix L that is given (logits.data set: q and k are not looked at).
// Stored is scale[c] * out + shift[c] + residual[i][c].
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/common/feature_map.h"

namespace saccade::kernels {

// A matrix for every sample and head: rows lie where the positions of a feature map do, `row_stride` apart
// per spatial dimension (a plain matrix has row_stride {0, 0, s}); strides in elements, 0 for what samples or
// heads share. Elements are float32 or of the map's type.
template <typename Void>
struct BasicRows {
  Void* data = nullptr;
  Dtype dtype = Dtype::kFloat32;
  int64_t batch_stride = 0;
  int64_t head_stride = 0;
  int64_t channel_stride = 1;
  int64_t row_stride[kMaxSpatialDims] = {0, 0, 0};
};
using Rows = BasicRows<const void>;
using OutputRows = BasicRows<void>;

// The channels of a map, `head_channels` to a head; 0: all heads see the same.
template <typename Void>
BasicRows<Void> RowsOf(const BasicFeatureMap<Void>& map, Dtype dtype, int64_t head_channels) {
  BasicRows<Void> rows;
  rows.data = map.data;
  rows.dtype = dtype;
  rows.batch_stride = map.batch_stride;
  rows.head_stride = head_channels * map.channel_stride;
  rows.channel_stride = map.channel_stride;
  for (int d = 0; d < kMaxSpatialDims; ++d) rows.row_stride[d] = map.spatial_stride[d];
  return rows;
}

// What was written, to be read.
inline Rows Readable(const OutputRows& written) {
  Rows rows;
  rows.data = written.data;
  rows.dtype = written.dtype;
  rows.batch_stride = written.batch_stride;
  rows.head_stride = written.head_stride;
  rows.channel_stride = written.channel_stride;
  for (int d = 0; d < kMaxSpatialDims; ++d) rows.row_stride[d] = written.row_stride[d];
  return rows;
}

// A float32 matrix: weights, or something in the workspace.
template <typename Float>
auto MatrixRows(Float* data, int64_t row_stride, int64_t channel_stride, int64_t head_stride = 0,
                int64_t batch_stride = 0) {
  BasicRows<std::conditional_t<std::is_const_v<Float>, const void, void>> rows;
  rows.data = data;
  rows.batch_stride = batch_stride;
  rows.head_stride = head_stride;
  rows.channel_stride = channel_stride;
  rows.row_stride[kMaxSpatialDims - 1] = row_stride;
  return rows;
}

// `count` rows in every sample, or as many as valid [B] says.
inline Extent RowExtent(int64_t count, const int64_t* valid = nullptr) {
  Extent extent;
  extent.size[kMaxSpatialDims - 1] = count;
  extent.spatial_dims = 1;
  extent.valid = valid;
  return extent;
}

struct AttendProblem {
  int64_t batch = 0;
  int64_t heads = 1;
  int64_t depth = 0;           // channels of q and k, per head
  int64_t value_channels = 0;  // channels of v and out, per head
  // The rows of q, logits, out and residual, and those of k and v. Rows beyond a sample's valid extent are
  // never read, and those of out are written as zero.
  Extent queries, keys;

  Rows q, k, v;
  // Given in place of q and k: rows are queries, and a key's place is given by its own strides.
  Rows logits;
  int64_t logits_key_stride[kMaxSpatialDims] = {0, 0, 0};

  bool softmax = true;
  float scale = 1;
  const float* key_bias = nullptr;    // [heads, keys], by the key's number
  const float* query_bias = nullptr;  // [heads, queries]; without softmax only, where it does not cancel
  // Without softmax: divides P by the number of the sample's keys.
  bool mean = false;
  // Keys in groups of so many, each with a softmax of its own, their results added up; 0: one group. Not with
  // valid keys.
  int64_t key_group = 0;

  OutputRows out;
  bool clear = true;                     // out's rows beyond the valid extent: zeroed, or left as they are
  const float* channel_scale = nullptr;  // [heads, value_channels], as is the next
  const float* channel_shift = nullptr;
  Rows residual;
  float* row_sums = nullptr;  // [B, heads, queries]: the sums over j of P; without softmax only
};

}  // namespace saccade::kernels
