// The attention core's bookkeeping, for the host and the kernels: tiles, splits, workspace.
#pragma once

#include "kernels/common/device.h"
#include "kernels/device/attend_problem.h"
#include "kernels/device/operand_tile.cuh"

namespace saccade::kernels {

// A problem with its derived sizes; the argument of the attention kernels.
struct Attend {
  static constexpr int kMaxValueTiles = 4;  // maximum per block, 64 channels each
  // Two blocks for each of the 132 multiprocessors of an H100 or H200.
  static constexpr int64_t kBlocksWanted = 264;

  // `workspace` has FloatsOfWorkspace() floats, which may be uninitialised.
  Attend(const AttendProblem& problem, float* workspace) : p(problem), partial(workspace) {
    constexpr double kLog2E = 1.4426950408889634;
    scale = static_cast<float>(p.softmax ? p.scale * kLog2E : p.scale);
    bias_scale = p.softmax ? static_cast<float>(kLog2E) : 1.0f;
    if (!p.softmax) p.key_group = 0;
    all_queries = PositionsOf(p.queries);
    all_keys = PositionsOf(p.keys);
    query_tiles = Tiles(all_queries);
    slots = Slots();
    value_chunks = (p.value_channels + kMaxValueTiles * kTile - 1) / (kMaxValueTiles * kTile);
    out_adjacent = PositionsAdjacent(p.out);
    // A sample with fewer valid queries has more ranges.
    const int64_t most_ranges =
        p.queries.valid == nullptr ? Splits(query_tiles, Tiles(all_keys)) : Splits(1, Tiles(all_keys));
    merge_groups = kBlockWarps / MergeWarps(most_ranges);
  }

  int64_t FloatsOfWorkspace() const {
    return slots > query_tiles ? p.batch * p.heads * slots * PartialFloats() : 0;
  }

  __host__ __device__ static int64_t Tiles(int64_t count) { return (count + kTile - 1) / kTile; }

  // Returns the number of ranges into which the keys are split: enough blocks to occupy a GPU, at least one
  // tile each. Both counts are of the sample's valid part.
  __host__ __device__ static int64_t Splits(int64_t query_tiles, int64_t key_tiles) {
    const int64_t wanted = query_tiles < 1 ? 1 : kBlocksWanted / query_tiles;
    const int64_t splits = wanted < key_tiles ? wanted : key_tiles;
    return splits < 1 ? 1 : splits;
  }

  // Returns the number of ranges of channels whose sums a logit adds in their order. It depends on nothing
  // else, because it decides the bits.
  __host__ __device__ static int64_t Planes(int64_t depth) {
    return depth < 512 ? 1 : depth < 4096 ? depth / 256 : 16;
  }
  // Returns the number of channels of a plane; the last one has fewer.
  __host__ __device__ static int64_t PlaneDepth(int64_t depth) {
    return (depth + Planes(depth) - 1) / Planes(depth);
  }

  // Returns true if neighbouring threads should access neighbouring positions instead of channels.
  template <typename Void>
  __host__ __device__ static bool PositionsAdjacent(const BasicRows<Void>& rows) {
    return rows.channel_stride != 1 || rows.row_stride[kMaxSpatialDims - 1] == 1;
  }

  // A slot in the workspace holds 64 x value_channels sums, then 64 maxima, then 64 sums of coefficients.
  __host__ __device__ int64_t PartialFloats() const { return kTile * (p.value_channels + 2); }
  __device__ int64_t PartialAt(int64_t row, int64_t channel) const {
    return out_adjacent ? channel * kTile + row : row * p.value_channels + channel;
  }

  // Returns how many warps of the merge kernel share the same results: few ranges are faster read by one. It
  // is less than the number of ranges, and depends on nothing else, because it decides the bits.
  __host__ __device__ static int MergeWarps(int64_t ranges) {
    return ranges <= 4 ? 1 : ranges <= 8 ? 2 : ranges <= 16 ? 4 : kBlockWarps;
  }
  // The merge kernel's blocks for one tile of queries, of merge_groups groups of 32 results along the
  // adjacent side.
  __host__ __device__ int64_t MergeBlocks() const {
    return (MergeRowBlocks() * MergeChannelBlocks() + merge_groups - 1) / merge_groups;
  }
  __host__ __device__ int64_t MergeRowBlocks() const {
    const int64_t rows = all_queries < kTile ? all_queries : kTile;
    return out_adjacent ? (rows + kWarp - 1) / kWarp : rows;
  }
  __host__ __device__ int64_t MergeChannelBlocks() const {
    return out_adjacent ? p.value_channels : (p.value_channels + kWarp - 1) / kWarp;
  }

  AttendProblem p;
  float* partial;                 // [B, heads, slots] of PartialFloats()
  float scale;                    // factor of the products; with softmax, logits are base-2 exponents
  float bias_scale;               // factor of the biases
  int64_t all_queries, all_keys;  // padding included
  int64_t query_tiles;
  int64_t slots;  // maximum over samples of query tiles * ranges of keys
  int64_t value_chunks;
  int merge_groups;  // as many as fit beside each other where a sample has the most ranges
  bool out_adjacent;
  // Given or written logits are one sum, or all Planes(depth) of them, plane_stride elements apart.
  int planes = 1;
  int64_t plane_stride = 0;

 private:
  int64_t Slots() const {
    if (p.key_group != 0) return query_tiles;
    const int64_t key_tiles = Tiles(all_keys);
    if (p.queries.valid == nullptr) return query_tiles * Splits(query_tiles, key_tiles);
    // A sample with fewer valid queries may have more ranges, but never more than kBlocksWanted blocks.
    const int64_t max_slots = query_tiles * Splits(1, key_tiles);
    const int64_t wanted = query_tiles > kBlocksWanted ? query_tiles : kBlocksWanted;
    return max_slots < wanted ? max_slots : wanted;
  }
};

// Argument of the kernel that zeroes the rows of a result outside a sample's valid extent.
struct AttendClear {
  OutputRows out;
  Extent queries;
  int64_t heads, channels, positions;
};

}  // namespace saccade::kernels
