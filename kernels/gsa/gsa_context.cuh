// The kernels of global content: context[d][c] = sum over positions n of softmax over n of K[n][d], times
// V[n][c], for each head. A block sums a range of positions; a second kernel merges the ranges in order.
#pragma once

#include <cmath>

#include "kernels/gsa/gsa_rows.cuh"

namespace saccade::kernels {

// One call, as passed to both kernels.
struct GsaContextRun {
  static constexpr int kChannels = 64;    // of keys, and of values, per block
  static constexpr int kPositions = 256;  // per range, numbered among the sample's valid ones

  static int64_t Ranges(int64_t positions) { return (positions + kPositions - 1) / kPositions; }
  // A range has a maximum and a sum of each key channel, then the sums of products.
  static int64_t PartialFloats(int64_t key_channels, int64_t value_channels) {
    return key_channels * (2 + value_channels);
  }
  int64_t PartialBlocks() const { return batch * heads * ranges * key_chunks * value_chunks; }
  int64_t MergeBlocks() const { return batch * heads * merge_blocks; }
  __device__ float* Partial(int64_t matrix, int64_t range) const {
    return partial + (matrix * ranges + range) * k.channels * (2 + v.channels);
  }

  GsaRows k, v;
  Extent extent;
  int64_t batch, heads;
  int ranges;  // of the whole extent; a sample with padding has fewer
  int key_chunks, value_chunks, merge_blocks;
  float* partial;  // [B, heads, ranges] of PartialFloats()
  float* context;  // [B, heads, key_channels, value_channels]
};

__device__ inline int GsaMin(int a, int b) { return a < b ? a : b; }

// Loads `width` channels of positions [begin, begin + count) of the sample's valid ones as floats; further
// positions of the tile get `missing`.
template <typename T>
__device__ void LoadPositions(const GsaRows& rows, const DeviceBox& box, int64_t matrix, int first_channel,
                              int width, int begin, int count, int tile_positions, float missing,
                              float* tile) {
  const int vectors = width / kGsaVector;
  const bool whole_rows = box.size[2] == box.full[2];
  for (int i = static_cast<int>(threadIdx.x); i < tile_positions * vectors; i += kGsaThreads) {
    const int n = i / vectors;
    const int c = i % vectors * kGsaVector;
    float vector[kGsaVector];
    if (n < count) {
      const int position = whole_rows ? begin + n : box.PositionOf(begin + n);
      LoadVector(rows.Row<T>(matrix, position) + first_channel + c, vector);
    } else {
      for (float& value : vector) value = missing;
    }
    SACCADE_UNROLL
    for (int j = 0; j < kGsaVector; j += 4) {
      const float four[4] = {vector[j], vector[j + 1], vector[j + 2], vector[j + 3]};
      StoreFour(four, tile + n * width + c + j);
    }
  }
}

// A thread sums 4 key channels x 4 value channels over every `groups`-th position.
template <typename T>
__global__ void __launch_bounds__(kGsaThreads, 2) GsaContextKernel(GsaContextRun run) {
  constexpr int kTileFloats = GsaContextRun::kChannels * GsaContextRun::kChannels;
  SACCADE_SHARED(GsaWords, key_words, kTileFloats / 4);
  SACCADE_SHARED(GsaWords, value_words, kTileFloats / 4);
  SACCADE_SHARED(float, tops, kGsaThreads);
  SACCADE_SHARED(float, top, GsaContextRun::kChannels);
  SACCADE_SHARED(float, shrink, GsaContextRun::kChannels);
  auto* const keys = reinterpret_cast<float*>(key_words);  // logits, then coefficients
  auto* const values = reinterpret_cast<float*>(value_words);
  const auto thread = static_cast<int>(threadIdx.x);

  unsigned block = blockIdx.x;
  const int first_value = static_cast<int>(block % run.value_chunks) * GsaContextRun::kChannels;
  block /= run.value_chunks;
  const int first_key = static_cast<int>(block % run.key_chunks) * GsaContextRun::kChannels;
  block /= run.key_chunks;
  const int range = static_cast<int>(block % run.ranges);
  const int64_t matrix = block / run.ranges;
  const DeviceBox box(run.extent, matrix / run.heads);
  const int end = GsaMin((range + 1) * GsaContextRun::kPositions, box.Positions());
  if (range * GsaContextRun::kPositions >= end) return;

  const int key_width = GsaMin(run.k.stride - first_key, GsaContextRun::kChannels);
  const int value_width = GsaMin(run.v.stride - first_value, GsaContextRun::kChannels);
  const int width = key_width > value_width ? key_width : value_width;
  // The number of positions per step depends on the channels alone.
  const int step = width <= 16 ? 256 : width <= 32 ? 128 : 64;
  const int tiles = key_width / 4 * (value_width / 4);
  const int groups = kGsaThreads / tiles;
  const int group = thread / tiles;
  const int own_key = thread % tiles / (value_width / 4) * 4;
  const int own_value = thread % tiles % (value_width / 4) * 4;
  const int parts = kGsaThreads / key_width;
  if (thread < key_width) top[thread] = -INFINITY;
  float sums[4][4] = {};
  float totals[4] = {};
  for (int begin = range * GsaContextRun::kPositions; begin < end; begin += step) {
    const int count = GsaMin(step, end - begin);
    __syncthreads();
    LoadPositions<T>(run.k, box, matrix, first_key, key_width, begin, count, step, -INFINITY, keys);
    LoadPositions<T>(run.v, box, matrix, first_value, value_width, begin, count, step, 0, values);
    __syncthreads();
    if (thread < parts * key_width) {
      float max = -INFINITY;
      for (int n = thread / key_width; n < count; n += parts) {
        max = fmaxf(max, keys[n * key_width + thread % key_width]);
      }
      tops[thread] = max;
    }
    __syncthreads();
    if (thread < key_width) {
      float max = top[thread];
      for (int part = 0; part < parts; ++part) max = fmaxf(max, tops[part * key_width + thread]);
      shrink[thread] = expf(top[thread] - max);
      top[thread] = max;
    }
    __syncthreads();
    if (thread < parts * key_width) {
      const float max = top[thread % key_width];
      for (int n = thread / key_width; n < step; n += parts) {
        float& key = keys[n * key_width + thread % key_width];
        key = expf(key - max);
      }
    }
    __syncthreads();
    SACCADE_UNROLL
    for (int d = 0; d < 4; ++d) {
      const float factor = shrink[own_key + d];
      totals[d] *= factor;
      SACCADE_UNROLL
      for (int c = 0; c < 4; ++c) sums[d][c] *= factor;
    }
    if (group >= groups) continue;
    float part_sums[4][4] = {};
    float part_totals[4] = {};
    SACCADE_UNROLL_BY(4)
    for (int n = group; n < step; n += groups) {
      float key[4], value[4];
      LoadFour(keys + n * key_width + own_key, key);
      LoadFour(values + n * value_width + own_value, value);
      SACCADE_UNROLL
      for (int d = 0; d < 4; ++d) {
        part_totals[d] += key[d];
        SACCADE_UNROLL
        for (int c = 0; c < 4; ++c) part_sums[d][c] += key[d] * value[c];
      }
    }
    SACCADE_UNROLL
    for (int d = 0; d < 4; ++d) {
      totals[d] += part_totals[d];
      SACCADE_UNROLL
      for (int c = 0; c < 4; ++c) sums[d][c] += part_sums[d][c];
    }
  }

  // The groups' sums, added in order.
  float* const partial = run.Partial(matrix, range);
  __syncthreads();
  SACCADE_UNROLL
  for (int i = 0; i < 16; ++i) keys[i * kGsaThreads + thread] = sums[i / 4][i % 4];
  SACCADE_UNROLL
  for (int d = 0; d < 4; ++d) values[d * kGsaThreads + thread] = totals[d];
  __syncthreads();
  for (int i = thread; i < key_width * value_width; i += kGsaThreads) {
    const int d = i / value_width;
    const int c = i % value_width;
    if (first_key + d >= run.k.channels || first_value + c >= run.v.channels) continue;
    const int tile = d / 4 * (value_width / 4) + c / 4;
    const float* const from = keys + (d % 4 * 4 + c % 4) * kGsaThreads + tile;
    float sum = 0;
    for (int j = 0; j < groups; ++j) sum += from[j * tiles];
    partial[2 * run.k.channels + (first_key + d) * run.v.channels + first_value + c] = sum;
  }
  if (thread >= key_width || first_key + thread >= run.k.channels || first_value > 0) return;
  const float* const from = values + thread % 4 * kGsaThreads + thread / 4 * (value_width / 4);
  float total = 0;
  for (int j = 0; j < groups; ++j) total += from[j * tiles];
  partial[first_key + thread] = top[thread];
  partial[run.k.channels + first_key + thread] = total;
}

// A thread computes one element of the context.
template <typename T>
__global__ void __launch_bounds__(kGsaThreads) GsaContextMergeKernel(GsaContextRun run) {
  const int64_t matrix = blockIdx.x / run.merge_blocks;
  const int element =
      static_cast<int>(blockIdx.x % run.merge_blocks) * kGsaThreads + static_cast<int>(threadIdx.x);
  const int size = run.k.channels * run.v.channels;
  if (element >= size) return;
  const int key = element / run.v.channels;
  const DeviceBox box(run.extent, matrix / run.heads);
  const int ranges = (box.Positions() + GsaContextRun::kPositions - 1) / GsaContextRun::kPositions;
  float max = -INFINITY;
  for (int range = 0; range < ranges; ++range) max = fmaxf(max, run.Partial(matrix, range)[key]);
  float sum = 0;
  float total = 0;
  for (int range = 0; range < ranges; ++range) {
    const float* const partial = run.Partial(matrix, range);
    const float factor = expf(partial[key] - max);
    total += partial[run.k.channels + key] * factor;
    sum += partial[2 * run.k.channels + element] * factor;
  }
  run.context[matrix * size + element] = ranges > 0 ? sum / total : 0.0f;
}

}  // namespace saccade::kernels
