// Softmax attention by a library that takes rows of adjacent channels: what is done before and after it.
// 16-bit queries, keys and values are packed, the valid positions of a sample first; the library attends; and
// the results are taken apart again, through the operator's own epilogue.
//
// A sample takes `queries` rows of the packed queries and `keys` of the others, of which the library reads
// the first `used_keys[sample]`. Positions are packed in the order in which they are numbered within the
// valid extent, so neither padding nor the rest of the batch changes what the library computes for a sample.
#pragma once

#include "kernels/attention/attention.cuh"
#include "kernels/attention/attention_cuda.h"

namespace saccade::kernels {

// The kernels' argument.
struct AttentionPack {
  static constexpr int kPositions = 32;  // of a block
  static constexpr int kChannels = 64;

  AttentionPack(const AttentionCuda& run, const AttentionPacked& packed_)
      : a(run.Softmax()), packed(packed_) {
    queries = PositionsOf(run.p.extent);
    keys = PositionsOf(run.keys);
    row = run.p.heads * packed.head_channels;
    positions_adjacent = a.out.row_stride[kMaxSpatialDims - 1] == 1;
  }

  int64_t ChannelBlocks() const { return Blocks(row, kChannels); }

  AttendProblem a;
  AttentionPacked packed;
  int64_t queries, keys;
  int64_t row;              // channels of a packed row
  bool positions_adjacent;  // of the result
};

// A block's positions and channels; channels advance fastest in the grid.
struct AttentionPackPlace {
  __device__ AttentionPackPlace(int64_t block, int64_t positions, const AttentionPack& run) {
    const int64_t channel_blocks = (run.row + AttentionPack::kChannels - 1) / AttentionPack::kChannels;
    const int64_t position_blocks = (positions + AttentionPack::kPositions - 1) / AttentionPack::kPositions;
    channel = static_cast<int>(block % channel_blocks) * AttentionPack::kChannels;
    position = static_cast<int>(block / channel_blocks % position_blocks) * AttentionPack::kPositions;
    sample = block / channel_blocks / position_blocks;
  }
  int channel, position;
  int64_t sample;
};

// Launched with the blocks of the queries, then those of the keys, then those of the values.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads) AttentionPackKernel(AttentionPack run) {
  constexpr int kPositions = AttentionPack::kPositions;
  constexpr int kChannels = AttentionPack::kChannels;
  SACCADE_SHARED(float, tile, kPositions*(kChannels + 1));
  const AttendProblem& a = run.a;
  const int64_t channel_blocks = (run.row + kChannels - 1) / kChannels;
  const int64_t query_blocks = a.batch * ((run.queries + kPositions - 1) / kPositions) * channel_blocks;
  const int64_t key_blocks = a.batch * ((run.keys + kPositions - 1) / kPositions) * channel_blocks;
  int64_t block = blockIdx.x;
  const bool of_queries = block < query_blocks;
  if (!of_queries) block -= query_blocks;
  const bool of_values = !of_queries && block >= key_blocks;
  if (of_values) block -= key_blocks;
  const int64_t count = of_queries ? run.queries : run.keys;
  const AttentionPackPlace place(block, count, run);
  const Rows& from = of_queries ? a.q : of_values ? a.v : a.k;
  const auto channels = static_cast<int>(of_values ? a.value_channels : a.depth);
  const auto head_channels = static_cast<int>(run.packed.head_channels);
  auto* const to = static_cast<T*>(of_queries ? run.packed.q : of_values ? run.packed.v : run.packed.k);
  const DeviceBox box(of_queries ? a.queries : a.keys, place.sample);
  const int valid = box.Positions();
  const int thread = static_cast<int>(threadIdx.x);
  if (of_queries && place.channel == 0 && place.position == 0 && thread == 0) {
    const int64_t b = place.sample;
    run.packed.query_starts[b] = static_cast<int32_t>(b * run.queries);
    run.packed.key_starts[b] = static_cast<int32_t>(b * run.keys);
    if (b + 1 == a.batch) run.packed.query_starts[b + 1] = static_cast<int32_t>(a.batch * run.queries);
    if (b + 1 == a.batch) run.packed.key_starts[b + 1] = static_cast<int32_t>(a.batch * run.keys);
    run.packed.used_keys[b] = DeviceBox(a.keys, b).Positions();
  }

  const bool positions_adjacent = from.row_stride[kMaxSpatialDims - 1] == 1;
  SACCADE_UNROLL_BY(4)
  for (int i = thread; i < kPositions * kChannels; i += kBlockThreads) {
    const int p = positions_adjacent ? i % kPositions : i / kChannels;
    const int c = positions_adjacent ? i / kPositions : i % kChannels;
    const int number = place.position + p;
    const int head = (place.channel + c) / head_channels;
    const int channel = (place.channel + c) % head_channels;
    float value = 0;
    if (number < valid && head < a.heads && channel < channels) {
      value = LoadElement<T>(from, MatrixOffset(from, place.sample, head) + channel * from.channel_stride +
                                       box.OffsetOf(number, from.row_stride));
    }
    tile[p * (kChannels + 1) + c] = value;
  }
  __syncthreads();
  for (int i = thread; i < kPositions * kChannels; i += kBlockThreads) {
    const int64_t number = place.position + i / kChannels;
    const int64_t channel = place.channel + i % kChannels;
    if (number >= count || channel >= run.row) continue;
    FromFloat(tile[i / kChannels * (kChannels + 1) + i % kChannels],
              to + (place.sample * count + number) * run.row + channel);
  }
}

// Stores the library's results. Launched with one block per sample, block of queries and block of channels.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads) AttentionUnpackKernel(AttentionPack run) {
  constexpr int kPositions = AttentionPack::kPositions;
  constexpr int kChannels = AttentionPack::kChannels;
  SACCADE_SHARED(float, tile, kPositions*(kChannels + 1));
  const AttendProblem& a = run.a;
  const AttentionPackPlace place(blockIdx.x, run.queries, run);
  const DeviceBox box(a.queries, place.sample);
  const int valid = box.Positions();
  const int thread = static_cast<int>(threadIdx.x);
  const auto* const from = static_cast<const T*>(run.packed.out);
  for (int i = thread; i < kPositions * kChannels; i += kBlockThreads) {
    const int64_t number = place.position + i / kChannels;
    const int64_t channel = place.channel + i % kChannels;
    if (number < valid && channel < run.row) {
      tile[i / kChannels * (kChannels + 1) + i % kChannels] =
          ToFloat(from[(place.sample * run.queries + number) * run.row + channel]);
    }
  }
  __syncthreads();
  const auto head_channels = static_cast<int>(run.packed.head_channels);
  SACCADE_UNROLL_BY(4)
  for (int i = thread; i < kPositions * kChannels; i += kBlockThreads) {
    const int p = run.positions_adjacent ? i % kPositions : i / kChannels;
    const int c = run.positions_adjacent ? i / kPositions : i % kChannels;
    const int number = place.position + p;
    const int head = (place.channel + c) / head_channels;
    const int channel = (place.channel + c) % head_channels;
    if (number >= valid || head >= a.heads || channel >= a.value_channels) continue;
    StoreResult<T>(a, place.sample, head, channel, a.value_channels,
                   box.OffsetOf(number, a.out.row_stride) + channel * a.out.channel_stride,
                   box.OffsetOf(number, a.residual.row_stride), tile[p * (kChannels + 1) + c]);
  }
}

// Returns the channels of a packed head, or 0 if the problem is left to the attention core. The choice
// depends neither on the batch nor on extents, which padding changes.
inline int64_t PackedHeadChannels(const AttentionProblem& p) {
  constexpr int64_t kMaxHeadChannels = 256;
  if (p.kind == AttentionKind::kMean || BytesOf(p.dtype) != 2 || !(p.logit_scale > 0)) return 0;
  const int64_t widest = (p.key_channels > p.value_channels ? p.key_channels : p.value_channels) / p.heads;
  return widest <= kMaxHeadChannels ? Blocks(widest, 8) * 8 : 0;
}

// Row numbers are 32-bit, and grids one-dimensional.
inline bool AttentionPacksFit(const AttentionProblem& p) {
  const AttentionCuda run(p, nullptr);
  return 3 * p.batch * (Blocks(PositionsOf(p.extent), AttentionPack::kPositions) + 1) *
             AttentionPack::kPositions <=
         kMaxBlocks / Blocks(p.heads * PackedHeadChannels(p), AttentionPack::kChannels);
}

// Runs what comes before the library.
template <typename T, typename Launch>
void RunAttentionPack(const AttentionProblem& p, const AttentionPacked& packed, float* workspace,
                      const Launch& launch) {
  const AttentionCuda run(p, workspace);
  RunAttentionInputs<T>(run, launch);
  const AttentionPack pack(run, packed);
  const int64_t positions =
      Blocks(pack.queries, AttentionPack::kPositions) + 2 * Blocks(pack.keys, AttentionPack::kPositions);
  launch(AttentionPackKernel<T>, p.batch * positions * pack.ChannelBlocks(), kBlockThreads, pack);
}

// Runs what comes after it.
template <typename T, typename Launch>
void RunAttentionUnpack(const AttentionProblem& p, const AttentionPacked& packed, float* workspace,
                        const Launch& launch) {
  const AttentionCuda run(p, workspace);
  const AttentionPack pack(run, packed);
  RunClear<T>(pack.a, pack.a.value_channels, launch);
  launch(AttentionUnpackKernel<T>,
         p.batch * Blocks(pack.queries, AttentionPack::kPositions) * pack.ChannelBlocks(), kBlockThreads,
         pack);
  if (p.out_weight != nullptr) RunProduct<T>(run.Project(), launch);
}

}  // namespace saccade::kernels
