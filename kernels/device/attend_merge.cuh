// Kernels that complete the attention core's results: they merge ranges of keys and clear the padding.
#pragma once

#include "kernels/device/attend_block.cuh"

namespace saccade::kernels {

// What the ranges of one warp, or of several, add up to: the sum of exp2(range's top - top) times the range's
// coefficients and values; without softmax the plain sums.
struct MergedRanges {
  float top, total, value;
};

// Merges the ranges of keys. A group of 32 results has MergeWarps(ranges) warps: each merges every so-manieth
// range in their order, and the first one then merges the warps' sums in their order. Launched with one block
// per sample, head, tile of queries (padding included) and run.merge_groups groups of its results.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads) AttendMergeKernel(Attend run) {
  SACCADE_SHARED(MergedRanges, parts, kBlockThreads);
  const AttendProblem& p = run.p;
  const int64_t blocks = run.MergeBlocks();
  const int64_t first_group = blockIdx.x % blocks * run.merge_groups;
  const int64_t tile = blockIdx.x / blocks % run.query_tiles;
  const int64_t matrix = blockIdx.x / blocks / run.query_tiles;
  const int64_t sample = matrix / p.heads;

  const DeviceBox queries(p.queries, sample);
  const int query_count = queries.Positions();
  const int64_t query_tiles = Attend::Tiles(query_count);
  const int key_count = DeviceBox(p.keys, sample).Positions();
  const auto splits = static_cast<int>(Attend::Splits(query_tiles, Attend::Tiles(key_count)));
  if (splits == 1) return;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warps = Attend::MergeWarps(splits);
  const int in_block = static_cast<int>(threadIdx.x) / kWarp / warps;
  const int warp = static_cast<int>(threadIdx.x) / kWarp % warps;
  const int64_t group = first_group + in_block;
  const int64_t row_blocks = run.MergeRowBlocks();
  const auto row_block = static_cast<int>(group % row_blocks);
  const int64_t channel_block = group / row_blocks;
  const int row = run.out_adjacent ? row_block * kWarp + lane : row_block;
  const int64_t channel = run.out_adjacent ? channel_block : channel_block * kWarp + lane;
  const int query = static_cast<int>(tile) * kTile + row;
  const bool there = in_block < run.merge_groups && query < query_count && channel < p.value_channels;

  MergedRanges sum = {-INFINITY, 0, 0};
  if (there) {
    const int64_t floats = run.PartialFloats();
    const float* slot = run.partial + (matrix * run.slots + tile) * floats;
    const float* tops = slot + kTile * p.value_channels + row;
    const float* totals = tops + kTile;
    const float* values = slot + run.PartialAt(row, channel);
    const int64_t step = query_tiles * floats;
    SACCADE_UNROLL_BY(8)
    for (int s = warp; s < splits && p.softmax; s += warps) sum.top = fmaxf(sum.top, tops[s * step]);
    SACCADE_UNROLL_BY(8)
    for (int s = warp; s < splits; s += warps) {
      const float weight = p.softmax ? exp2f(tops[s * step] - sum.top) : 1.0f;
      sum.total += weight * totals[s * step];
      sum.value += weight * values[s * step];
    }
  }
  parts[threadIdx.x] = sum;
  __syncthreads();
  if (!there || warp > 0) return;
  const MergedRanges* part = parts + threadIdx.x;
  float top = -INFINITY;
  for (int w = 0; w < warps && p.softmax; ++w) top = fmaxf(top, part[w * kWarp].top);
  float total = 0;
  float value = 0;
  for (int w = 0; w < warps; ++w) {
    const float weight = p.softmax ? exp2f(part[w * kWarp].top - top) : 1.0f;
    total += weight * part[w * kWarp].total;
    value += weight * part[w * kWarp].value;
  }
  const float factor = p.softmax ? 1 / total : MeanFactor(p, key_count);
  value *= factor;
  if (p.row_sums != nullptr && channel == 0) p.row_sums[matrix * run.all_queries + query] = total * factor;
  StoreResult<T>(p, sample, matrix % p.heads, channel, p.value_channels,
                 queries.OffsetOf(query, p.out.row_stride) + channel * p.out.channel_stride,
                 queries.OffsetOf(query, p.residual.row_stride), value);
}

// Launched with one block per sample, head and 64 positions, padding included.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads) AttendClearKernel(AttendClear run) {
  const int64_t tiles = Attend::Tiles(run.positions);
  const int64_t matrix = blockIdx.x / tiles;
  const int position = static_cast<int>(blockIdx.x % tiles) * kTile + static_cast<int>(threadIdx.x) % kTile;
  const int64_t sample = matrix / run.heads;
  if (position >= run.positions) return;
  if (DeviceBox(run.queries, sample).NumberOf(position) >= 0) return;
  Extent whole = run.queries;
  whole.valid = nullptr;
  const int64_t at = MatrixOffset(run.out, sample, matrix % run.heads) +
                     DeviceBox(whole, sample).OffsetOf(position, run.out.row_stride);
  for (int64_t c = threadIdx.x / kTile; c < run.channels; c += kBlockThreads / kTile) {
    if (run.out.dtype == Dtype::kFloat32) {
      static_cast<float*>(run.out.data)[at + c * run.out.channel_stride] = 0;
    } else {
      FromFloat(0, static_cast<T*>(run.out.data) + at + c * run.out.channel_stride);
    }
  }
}

}  // namespace saccade::kernels
