// One call of the strided attention core (attend.cuh) as plain pointers, strides and numbers. C++17.
//
//   out[i][c] = sum over keys j of P[i][j] V[j][c], for every sample and head, where
// P = softmax over j of L, or L itself (softmax = false), and
//   L[i][j] = scale * sum over d of Q[i][d] K[j][d] + key_bias[j] + query_bias[i],
//   or scale times a given matrix L (if logits.data is set; q and k are then ignored).
// The stored result is channel_scale[c] * out + channel_shift[c] + residual[i][c].
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/common/feature_map.h"

namespace saccade::kernels {

// A matrix for every sample and head. Rows lie at the positions of a feature map, `row_stride` apart per
// spatial dimension (a plain matrix has row_stride {0, 0, s}). Strides are in elements, and 0 if samples or
// heads share the data. Elements are float32 or of the map's type.
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

// Views the channels of a map as rows, `head_channels` channels per head; 0: all heads share all channels.
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

// Returns a read-only view of an output.
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

// Views a float32 matrix, such as weights or a part of the workspace.
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

// Returns an extent of `count` rows for every sample, of which valid[b] are valid if `valid` [B] is not null.
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
  // Extents of the rows of q, logits, out and residual, and of the rows of k and v. Rows outside a sample's
  // valid extent are never read; in `out` they are written as zeros (see `clear`).
  Extent queries, keys;

  Rows q, k, v;
  // Replaces q and k if set: rows are queries, and keys are logits_key_stride apart.
  Rows logits;
  int64_t logits_key_stride[kMaxSpatialDims] = {0, 0, 0};

  bool softmax = true;
  float scale = 1;
  const float* key_bias = nullptr;    // [heads, keys], by index among the valid keys
  const float* query_bias = nullptr;  // [heads, queries]; only without softmax, which cancels it
  // Divides P by the number of the sample's valid keys; only without softmax.
  bool mean = false;
  // Number of keys per group: each group has its own softmax, and the groups' results are added. 0: one
  // group. Must not be combined with valid keys.
  int64_t key_group = 0;

  OutputRows out;
  bool clear = true;                     // zero the rows of `out` outside the valid extent; false: leave them
  const float* channel_scale = nullptr;  // [heads, value_channels], like channel_shift
  const float* channel_shift = nullptr;
  Rows residual;
  float* row_sums = nullptr;  // [B, heads, queries]: sum over j of P; only without softmax
};

}  // namespace saccade::kernels
