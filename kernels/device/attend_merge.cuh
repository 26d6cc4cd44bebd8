// Kernels that complete the attention core's results: they merge ranges of keys and clear the padding.
#pragma once

#include "kernels/device/attend_block.cuh"

namespace saccade::kernels {

// Merges the ranges of keys in their order, one thread per result. Launched with one block per sample, head,
// tile of queries (padding included) and 256 of its results.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads) AttendMergeKernel(Attend run) {
  const AttendProblem& p = run.p;
  constexpr int kMergeRows = Attend::kMergeRows;
  const int64_t row_blocks = run.out_adjacent ? 1 : kTile / kMergeRows;
  const int64_t channel_blocks =
      run.out_adjacent ? (p.value_channels + kMergeRows - 1) / kMergeRows : Attend::Tiles(p.value_channels);
  int64_t block = blockIdx.x;
  const int thread = static_cast<int>(threadIdx.x);
  const int row = static_cast<int>(block % row_blocks) * kMergeRows +
                  (run.out_adjacent ? thread % kTile : thread / kTile);
  block /= row_blocks;
  const int64_t channel = block % channel_blocks * (run.out_adjacent ? kMergeRows : kTile) +
                          (run.out_adjacent ? thread / kTile : thread % kTile);
  block /= channel_blocks;
  const int64_t tile = block % run.query_tiles;
  const int64_t matrix = block / run.query_tiles;
  const int64_t sample = matrix / p.heads;

  const DeviceBox queries(p.queries, sample);
  const int query_count = queries.Positions();
  const int64_t query_tiles = Attend::Tiles(query_count);
  const int key_count = DeviceBox(p.keys, sample).Positions();
  const int64_t splits = Attend::Splits(query_tiles, Attend::Tiles(key_count));
  const int query = static_cast<int>(tile) * kTile + row;
  if (splits == 1 || query >= query_count || channel >= p.value_channels) return;

  const int64_t floats = run.PartialFloats();
  const float* slot = run.partial + (matrix * run.slots + tile) * floats;
  const float* tops = slot + kTile * p.value_channels + row;
  const float* totals = tops + kTile;
  const float* values = slot + run.PartialAt(row, channel);
  const int64_t step = query_tiles * floats;
  float top = -INFINITY;
  for (int64_t s = 0; s < splits && p.softmax; ++s) top = fmaxf(top, tops[s * step]);
  float total = 0;
  float value = 0;
  SACCADE_UNROLL_BY(4)
  for (int64_t s = 0; s < splits; ++s) {
    const float weight = p.softmax ? exp2f(tops[s * step] - top) : 1.0f;
    total += weight * totals[s * step];
    value += weight * values[s * step];
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
