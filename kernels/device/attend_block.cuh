// The steps of one block of the attention core; the kernels are in attend_kernels.cuh.
#pragma once

#include <cmath>

#include "kernels/common/device.h"
#include "kernels/device/attend_run.cuh"
#include "kernels/device/box.cuh"
#include "kernels/device/operand_tile.cuh"

namespace saccade::kernels {

template <typename Void>
__device__ int64_t MatrixOffset(const BasicRows<Void>& rows, int64_t sample, int64_t head) {
  return sample * rows.batch_stride + head * rows.head_stride;
}

template <typename T>
__device__ float LoadElement(const Rows& rows, int64_t at) {
  return rows.dtype == Dtype::kFloat32 ? static_cast<const float*>(rows.data)[at]
                                       : ToFloat(static_cast<const T*>(rows.data)[at]);
}

template <typename T>
__device__ TileSource SourceOf(const Rows& rows, int64_t sample, int64_t head, int64_t first_channel,
                               int64_t channels, const int64_t* at) {
  const bool float32 = rows.dtype == Dtype::kFloat32;
  const int64_t offset = MatrixOffset(rows, sample, head) + first_channel * rows.channel_stride;
  return {static_cast<const char*>(rows.data) +
              offset * static_cast<int64_t>(float32 ? sizeof(float) : sizeof(T)),
          float32, rows.channel_stride, at, static_cast<int>(channels - first_channel)};
}

// Stores channel_scale * value + channel_shift + residual in the result's type.
template <typename T>
__device__ void StoreResult(const AttendProblem& p, int64_t sample, int64_t head, int64_t channel,
                            int64_t channels, int64_t out_at, int64_t residual_at, float value) {
  const int64_t c = head * channels + channel;
  if (p.channel_scale != nullptr) value *= p.channel_scale[c];
  if (p.channel_shift != nullptr) value += p.channel_shift[c];
  if (p.residual.data != nullptr) {
    value += LoadElement<T>(p.residual, MatrixOffset(p.residual, sample, head) + residual_at +
                                            channel * p.residual.channel_stride);
  }
  out_at += MatrixOffset(p.out, sample, head);
  if (p.out.dtype == Dtype::kFloat32) {
    static_cast<float*>(p.out.data)[out_at] = value;
  } else {
    FromFloat(value, static_cast<T*>(p.out.data) + out_at);
  }
}

__device__ inline float MeanFactor(const AttendProblem& p, int keys) {
  return p.mean && keys > 0 ? 1.0f / static_cast<float>(keys) : 1.0f;
}

// How a tile of keys takes part in the softmax.
enum class KeyStep {
  kLinear,      // no softmax
  kOnline,      // running maxima and sums, which rescale earlier results
  kWhole,       // groups that lie within the tile
  kStatistics,  // groups of several tiles, first pass: maxima and sums
  kNormalised,  // groups of several tiles, second pass: results
};

struct KeyTile {
  int first;
  int count;
  KeyStep step;
  bool fresh;  // first tile of a group: maxima and sums start anew
};

// The tiles of keys that a block processes, in order.
struct KeyWalk {
  __device__ KeyWalk(const AttendProblem& p, int keys_, int split, int splits) : keys(keys_) {
    const auto group = static_cast<int>(p.key_group);
    if (group == 0) {
      const int64_t all = Attend::Tiles(keys);
      begin = static_cast<int>(all * split / splits);
      tiles = static_cast<int>(all * (split + 1) / splits) - begin;
    } else if (group <= kTile) {
      const int step = kTile / group * group;
      tiles = (keys + step - 1) / step;
    } else {
      tiles = keys / group * 2 * Tiles(group);
    }
  }

  __device__ KeyTile At(const AttendProblem& p, int i) const {
    const auto group = static_cast<int>(p.key_group);
    if (group == 0) {
      return Tile((begin + i) * kTile, keys, kTile, p.softmax ? KeyStep::kOnline : KeyStep::kLinear, false);
    }
    if (group <= kTile) {
      const int step = kTile / group * group;
      return Tile(i * step, keys, step, KeyStep::kWhole, false);
    }
    const int walk = i / Tiles(group);
    const int first = walk / 2 * group;
    return Tile(first + i % Tiles(group) * kTile, first + group, kTile,
                walk % 2 == 0 ? KeyStep::kStatistics : KeyStep::kNormalised, i % (2 * Tiles(group)) == 0);
  }

  __device__ static int Tiles(int count) { return (count + kTile - 1) / kTile; }
  __device__ static KeyTile Tile(int first, int end, int max_count, KeyStep step, bool fresh) {
    return {first, end - first < max_count ? end - first : max_count, step, fresh};
  }

  int keys;
  int begin = 0;
  int tiles = 0;
};

// Shared memory of a block.
template <typename E>
struct AttendShared {
  E* left;            // operand tile: queries
  E* right;           // operand tile: keys, then values
  E* coefficients;    // operand tile: coefficients; for float the same memory as `logits`
  float* logits;      // [64 keys][68 queries]: logits, coefficients, and results before they are stored
  float* top;         // [64] by query: largest logit so far
  float* total;       // [64] by query: sum of the coefficients
  float* correction;  // [64] by query: factor that rescales earlier results
  float* bias;        // [64] by key
  int64_t* query_at;  // [64] offsets of rows, -1 for rows that do not exist
  int64_t* key_at;
  int64_t* value_at;
};

inline constexpr int kLogitStride = SimtMath<float>::kStride;

// Computes the logits of one tile of queries and keys, without scale and biases, into shared.logits: over the
// planes from `plane` up to `end_plane`, each added after the sum of those before it. The row offsets must be
// set and visible to the block. Ends without a barrier. `keep_left`: the queries' tile of the last call is
// still valid.
template <typename T, typename Math>
__device__ void MultiplyKeys(const AttendProblem& p, const AttendShared<T>& shared, int64_t sample,
                             int64_t head, int plane, int end_plane, bool keep_left) {
  constexpr int kDepth = OperandTile<T>::kDepth;
  const auto depth = static_cast<int>(p.depth);
  const auto plane_depth = static_cast<int>(Attend::PlaneDepth(depth));
  TileTransfer<T, Math, true> left(Attend::PositionsAdjacent(p.q));
  TileTransfer<T, Math, true> right(Attend::PositionsAdjacent(p.k));
  for (const int first = plane; plane < end_plane; ++plane) {
    const int begin = plane * plane_depth;
    const int end = begin + plane_depth < depth ? begin + plane_depth : depth;
    if (plane > first) __syncthreads();
    float sum[kSums] = {};
    if (!keep_left) left.Fetch(SourceOf<T>(p.q, sample, head, begin, end, shared.query_at));
    right.Fetch(SourceOf<T>(p.k, sample, head, begin, end, shared.key_at));
    for (int channel = begin; channel < end; channel += kDepth) {
      if (channel > begin) __syncthreads();
      if (!keep_left) left.Put(shared.left);
      right.Put(shared.right);
      __syncthreads();
      const int next = channel + kDepth;
      if (next < end) {
        left.Fetch(SourceOf<T>(p.q, sample, head, next, end, shared.query_at));
        right.Fetch(SourceOf<T>(p.k, sample, head, next, end, shared.key_at));
      }
      Math::Multiply(shared.left, shared.right, next < end ? kDepth : end - channel, sum);
    }
    SACCADE_UNROLL
    for (int i = 0; i < kSums; ++i) {
      float* const logit = shared.logits + Math::Column(i) * kLogitStride + Math::Row(i);
      *logit = plane > first ? *logit + sum[i] : sum[i];
    }
  }
}

// Same for given logits.
template <typename T>
__device__ void LoadLogits(const Attend& run, const AttendShared<T>& shared, int64_t sample, int64_t head) {
  const Rows& rows = run.p.logits;
  const int64_t base = MatrixOffset(rows, sample, head);
  const bool queries_adjacent = rows.row_stride[kMaxSpatialDims - 1] == 1;
  SACCADE_UNROLL_BY(4)
  for (int i = 0; i < kSums; ++i) {
    const int element = static_cast<int>(threadIdx.x) + i * kBlockThreads;
    const int row = queries_adjacent ? element % kTile : element / kTile;
    const int key = queries_adjacent ? element / kTile : element % kTile;
    float logit = 0;
    if (shared.query_at[row] >= 0 && shared.key_at[key] >= 0) {
      const int64_t at = base + shared.query_at[row] + shared.key_at[key];
      logit = LoadElement<T>(rows, at);
      for (int plane = 1; plane < run.planes; ++plane)
        logit += LoadElement<T>(rows, at + plane * run.plane_stride);
    }
    shared.logits[key * kLogitStride + row] = logit;
  }
}

__device__ inline float QuadMax(float value) {
  for (int lanes = 1; lanes < 4; lanes *= 2) value = fmaxf(value, __shfl_xor_sync(kWholeWarp, value, lanes));
  return value;
}
__device__ inline float QuadSum(float value) {
  for (int lanes = 1; lanes < 4; lanes *= 2) value += __shfl_xor_sync(kWholeWarp, value, lanes);
  return value;
}

// Turns a tile's logits into its coefficients, four threads per query. `query_bias` is the bias of the
// thread's query.
template <typename T, typename Math>
__device__ void Coefficients(const Attend& run, const AttendShared<T>& shared, const KeyTile& tile,
                             float query_bias) {
  const int row = static_cast<int>(threadIdx.x) / 4;
  const int lane = static_cast<int>(threadIdx.x) % 4;
  const bool running = tile.step == KeyStep::kOnline || tile.step == KeyStep::kStatistics;
  const int group = tile.step == KeyStep::kWhole ? static_cast<int>(run.p.key_group) : tile.count;
  float* const logit = shared.logits + row;
  float factor = 1;
  for (int begin = 0; begin < tile.count; begin += group) {
    const int end = begin + group;
    float top = running && !tile.fresh ? shared.top[row] : -INFINITY;
    const float before = top;
    for (int key = begin + lane; key < end; key += 4) {
      top = fmaxf(top, fmaf(logit[key * kLogitStride], run.scale, shared.bias[key]));
    }
    top = tile.step == KeyStep::kNormalised ? shared.top[row] : QuadMax(top);
    float total = 0;
    for (int key = begin + lane; key < end; key += 4) {
      float* const at = logit + key * kLogitStride;
      // The largest exponent is subtracted within the rounding of the product: an exponent that was rounded
      // before would have an error of its own size, not of the difference's.
      *at = tile.step == KeyStep::kLinear ? fmaf(*at, run.scale, shared.bias[key]) + query_bias
                                          : exp2f(fmaf(*at, run.scale, -top) + shared.bias[key]);
      total += *at;
    }
    total = QuadSum(total);
    if (tile.step == KeyStep::kWhole) {
      factor = 1 / total;
      for (int key = begin + lane; key < end; key += 4) logit[key * kLogitStride] *= factor;
    } else if (tile.step == KeyStep::kNormalised) {
      factor = 1 / shared.total[row];
      for (int key = begin + lane; key < end; key += 4) logit[key * kLogitStride] *= factor;
    } else if (lane == 0) {
      // Zero for the first tile and after a fresh start, because `before` is -infinity.
      const float shrink = running ? exp2f(before - top) : 1.0f;
      shared.total[row] = shared.total[row] * shrink + total;
      shared.top[row] = top;
      shared.correction[row] = shrink;
    }
  }
  // A group need not begin at a multiple of four keys, so another lane may have written what this one reads.
  if (tile.step == KeyStep::kWhole) __syncwarp(kWholeWarp);
  for (int key = lane; key < kTile; key += 4) {
    FromFloat(key < tile.count ? logit[key * kLogitStride] : 0.0f,
              &shared.coefficients[Math::Index(row, key)]);
  }
}

}  // namespace saccade::kernels
