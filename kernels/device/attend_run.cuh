// The attention core's bookkeeping, on the host and in the kernels: tiles, splits, workspace.
#pragma once

#include "kernels/common/device.h"
#include "kernels/device/attend_problem.h"
#include "kernels/device/operand_tile.cuh"

namespace saccade::kernels {

struct Attend {
  static constexpr int kValueTiles = 4;  // 64 channels each: at most so many to a block
  static constexpr int64_t kBlocksWanted = 128;
  static constexpr int kMergeRows = 4;  // a block of the merge kernel takes 4 x 64 results

  // Reads problem; `workspace` may hold anything and has FloatsOfWorkspace floats.
  Attend(const AttendProblem& problem, float* workspace) : p(problem), partial(workspace) {
    constexpr double kLog2E = 1.4426950408889634;
    scale = static_cast<float>(p.softmax ? p.scale * kLog2E : p.scale);
    bias_scale = p.softmax ? static_cast<float>(kLog2E) : 1.0f;
    if (!p.softmax) p.key_group = 0;
    all_queries = PositionsOf(p.queries);
    all_keys = PositionsOf(p.keys);
    query_tiles = Tiles(all_queries);
    slots = Slots();
    value_chunks = (p.value_channels + kValueTiles * kTile - 1) / (kValueTiles * kTile);
    out_adjacent = PositionsAdjacent(p.out);
  }

  int64_t FloatsOfWorkspace() const {
    return slots > query_tiles ? p.batch * p.heads * slots * PartialFloats() : 0;
  }

  __host__ __device__ static int64_t Tiles(int64_t count) { return (count + kTile - 1) / kTile; }

  // Into how many stretches the keys are split: enough blocks for a chip, two tiles each at least. Both
  // counts are of the sample's valid part.
  __host__ __device__ static int64_t Splits(int64_t query_tiles, int64_t key_tiles) {
    const int64_t wanted = query_tiles < 1 ? 1 : kBlocksWanted / query_tiles;
    const int64_t splits = wanted < key_tiles ? wanted : key_tiles;
    return splits < 1 ? 1 : splits;
  }

  // Into how many sums the channels of a logit are split that goes through the workspace: few tiles of many
  // channels would else keep few blocks busy for long.
  static int64_t Planes(int64_t depth) { return depth < 512 ? 1 : depth < 4096 ? depth / 256 : 16; }

  // Whether neighbouring threads should take neighbouring positions, not channels.
  template <typename Void>
  __host__ __device__ static bool PositionsAdjacent(const BasicRows<Void>& rows) {
    return rows.channel_stride != 1 || rows.row_stride[kMaxSpatialDims - 1] == 1;
  }

  // A slot's part of the workspace: 64 x value_channels sums, then 64 maxima, then 64 sums of coefficients.
  __host__ __device__ int64_t PartialFloats() const { return kTile * (p.value_channels + 2); }
  __device__ int64_t PartialAt(int64_t row, int64_t channel) const {
    return out_adjacent ? channel * kTile + row : row * p.value_channels + channel;
  }

  AttendProblem p;
  float* partial;                 // [B, heads, slots] of PartialFloats
  float scale;                    // of the products: logits are in powers of two where there is a softmax
  float bias_scale;               // of the biases
  int64_t all_queries, all_keys;  // padding included
  int64_t query_tiles;
  int64_t slots;  // tiles of queries times stretches of keys, of any sample at most
  int64_t value_chunks;
  bool out_adjacent;
  // What is given as logits, or written as such, is so many sums of a part of the channels each, so far
  // apart.
  int planes = 1;
  int64_t plane_stride = 0;

 private:
  int64_t Slots() const {
    if (p.key_group != 0) return query_tiles;
    const int64_t key_tiles = Tiles(all_keys);
    if (p.queries.valid == nullptr) return query_tiles * Splits(query_tiles, key_tiles);
    // With fewer valid queries there may be more splits, but not more blocks than are wanted.
    const int64_t most = query_tiles * Splits(1, key_tiles);
    const int64_t wanted = query_tiles > kBlocksWanted ? query_tiles : kBlocksWanted;
    return most < wanted ? most : wanted;
  }
};

// What zeroes the rows of a result that lie beyond a sample's valid extent.
struct AttendClear {
  OutputRows out;
  Extent queries;
  int64_t heads, channels, positions;
};

}  // namespace saccade::kernels
