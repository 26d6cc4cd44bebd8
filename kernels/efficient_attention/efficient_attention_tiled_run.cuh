// Efficient attention with at most 64 key channels, for 16-bit maps on the tensor cores: its plan, for the
// host and the kernels. For maps of at most 256 channels, three kernels replace the steps of
// efficient_attention.cuh:
//   gather (efficient_attention_gather.cuh)  step 1: for each range of positions of a sample, the sums of
//                                            exp2(logit - top) x over its positions, for every key channel
//   fold (efficient_attention_fold.cuh)      merges the ranges in their order; steps 2 and 3
//   apply (efficient_attention_apply.cuh)    step 4
// For float32 maps efficient_attention_float32.cuh has the gather and the apply, in float32 arithmetic.
// Maps of 257 to 2048 channels are wide (efficient_attention_wide.cuh): the logits of keys and queries are
// computed first, and the gather and the apply then take slabs of 256 channels.
// The number of ranges depends only on the sample's valid positions and channels, and the tiles of a range
// are always the same, so that neither the batch nor the padding changes a sample's bits.
#pragma once

#include <cmath>

#include "kernels/device/operand_tile.cuh"
#include "kernels/efficient_attention/efficient_attention_problem.h"
#include "kernels/efficient_attention/efficient_attention_tiles.cuh"

namespace saccade::kernels {

struct EaTiled {
  // Two blocks for each of the 132 multiprocessors of an H100 or H200.
  static constexpr int kBlocks = 264;
  static constexpr int kMaxHeadValues = 1024;  // bounds the shared memory of the fold
  static constexpr int kMaxWideChannels = 2048;
  // Most floats of the workspace of a wide map, unless one sample takes more: larger batches are computed in
  // groups of samples one after the other, whose logits then stay in the L2 cache.
  static constexpr int64_t kMaxWideFloats = int64_t{16} << 20;
  // Floats of the logits of a tile's keys.
  static constexpr int64_t kTileLogits = kEaKeys * kEaTile;

  // `workspace` has FloatsOfWorkspace() floats, which may be uninitialised; null only to measure. It must be
  // aligned to 16 bytes.
  EaTiled(const EfficientAttentionProblem& problem, float* workspace_)
      : p(problem), group(problem.batch), workspace(workspace_) {
    widest = p.channels > p.out_channels ? p.channels : p.out_channels;
    wide = widest > kEaMaxChannels;
    slabs = wide ? Slabs(p.channels) : 1;
    out_slabs = wide ? Slabs(p.out_channels) : 1;
    width = wide ? slabs * kEaMaxChannels : widest <= 64 ? 64 : widest <= 128 ? 128 : kEaMaxChannels;
    out_width = wide ? out_slabs * kEaMaxChannels : width;
    max_splits = kBlocks / slabs;
    tiles = Tiles(PositionsOf(p.extent));
    slots = Splits(tiles);
    const bool half = p.dtype != Dtype::kFloat32;
    const int64_t folded_floats = out_width * (half ? kEaKeyRow<uint16_t> / 2 : kEaKeyRow<float>);
    const int64_t tile_queries = half ? kTileLogits / 2 : kTileLogits;
    if (wide) {
      const int64_t sample = slots * PartialFloats() + folded_floats + tiles * (kTileLogits + tile_queries);
      const int64_t most = kMaxWideFloats / sample;
      if (group > most) group = most < 1 ? 1 : most;
    }
    // A multiprocessor holds one block for a float32 map.
    const int64_t resident = p.dtype == Dtype::kFloat32 ? kBlocks / 2 : kBlocks;
    const auto fair = [&](int64_t parts) { return (resident + parts - 1) / (parts < 1 ? 1 : parts); };
    blocks = fair(group * slabs) < slots ? fair(group * slabs) : slots;
    out_blocks = fair(group * out_slabs) < tiles ? fair(group * out_slabs) : tiles;
    int64_t next = 0;
    const auto take = [&](int64_t floats) {
      float* const taken = workspace == nullptr ? nullptr : workspace + next;
      next += (floats + 3) / 4 * 4;
      return taken;
    };
    partial = take(group * slots * PartialFloats());
    folded = take(group * folded_floats);
    const int64_t row = half ? kEaSliceRow<uint16_t> / 2 : kEaSliceRow<float>;
    const int64_t narrow_row = half ? (width + kEaChunk<uint16_t>) / 2 : width + kEaChunk<float>;
    query_weight = take(kEaKeys * (wide ? Slices() * 2 * row : narrow_row));
    logits = take(wide ? group * tiles * kTileLogits : 0);
    queries = take(wide ? group * tiles * tile_queries : 0);
    all_floats = next;
  }

  int64_t FloatsOfWorkspace() const { return all_floats; }

  __host__ __device__ static int64_t Tiles(int64_t positions) { return (positions + kEaTile - 1) / kEaTile; }
  // Returns the number of ranges into which a sample's tiles are split. Range s has the tiles s, s + splits,
  // s + 2 * splits and so on.
  __host__ __device__ int64_t Splits(int64_t of_tiles) const {
    return of_tiles < max_splits ? of_tiles : max_splits;
  }
  static int64_t Slabs(int64_t channels) { return (channels + kEaMaxChannels - 1) / kEaMaxChannels; }
  // Returns the number of slices of channels whose weights a step of the wide logits takes.
  __host__ __device__ int64_t Slices() const { return (p.channels + kEaSlice - 1) / kEaSlice; }

  // A range's sums [64 keys][width], then 64 maxima, then 64 sums of coefficients.
  __host__ __device__ int64_t PartialFloats() const { return kEaKeys * (width + 2); }

  EfficientAttentionProblem p;
  int64_t group;      // samples that share the workspace; a larger batch is computed group by group
  int64_t widest;     // the larger one of channels and out_channels
  bool wide;          // tiles have a slab of the channels
  int64_t width;      // channels, rounded up to those of the tiles; if not wide, those of out_channels too
  int64_t out_width;  // out_channels likewise
  int64_t slabs;      // of channels; 1 if not wide
  int64_t out_slabs;  // of out_channels
  int64_t max_splits;
  int64_t tiles;  // of a sample without padding
  int64_t slots;  // maximum number of ranges of a sample
  // Number of blocks for each sample, and slab, which share its tiles or ranges; out_blocks are those of a
  // wide map's apply. They do not change the result.
  int64_t blocks;
  int64_t out_blocks;
  int64_t all_floats;
  float* workspace;
  float* partial;  // [group, slots] of PartialFloats()
  // These are of the map's type, with zeros around them:
  void* folded;        // [group, out_width][kEaKeyRow]: step 3's M, transposed
  void* query_weight;  // [64][width + kEaChunk]; if wide, [Slices()][64 keys, 64 queries][kEaSliceRow]
  // For wide maps, in the order in which threads hold them:
  float* logits;  // [group, tiles] of kTileLogits
  void* queries;  // [group, tiles] of kTileLogits coefficients of the map's type
};

// True if the problem has the form that the tiled kernels compute. It depends neither on the batch nor on the
// positions.
inline bool EaTiledFits(const EfficientAttentionProblem& p) {
  const int64_t head_keys = p.key_channels / p.heads;
  return IsModule(p) && p.dtype != Dtype::kFloat64 && p.channels <= EaTiled::kMaxWideChannels &&
         p.out_channels <= EaTiled::kMaxWideChannels && p.key_channels <= kEaKeys &&
         (p.heads == 1 || (head_keys % 8 == 0 && p.dtype != Dtype::kFloat32)) &&
         p.value_channels / p.heads <= EaTiled::kMaxHeadValues;
}

// Copies `rows` x `columns` floats to shared memory of `all_rows` rows that are `stride` elements apart,
// rounded, with zeros around them.
template <typename T>
__device__ void RoundMatrix(const float* from, int rows, int columns, int all_rows, int stride, T* to) {
  const bool fours = columns % 4 == 0 && reinterpret_cast<uintptr_t>(from) % sizeof(Float4) == 0;
  const int across = stride / 4;
  SACCADE_UNROLL_BY(4)
  for (int i = static_cast<int>(threadIdx.x); i < all_rows * across; i += kEaThreads<T>) {
    const int row = i / across;
    const int column = i % across * 4;
    Float4 four = {};
    if (row < rows && column < columns) {
      const float* const at = from + static_cast<int64_t>(row) * columns + column;
      if (fours) {
        four = *reinterpret_cast<const Float4*>(at);
      } else {
        for (int e = 0; e < 4; ++e) four.at[e] = column + e < columns ? at[e] : 0.0f;
      }
    }
    T* const at = to + row * stride + column;
    if constexpr (sizeof(T) == 2) {
      StorePair(RoundPair(four.at[0], four.at[1], T()), at);
      StorePair(RoundPair(four.at[2], four.at[3], T()), at + 2);
    } else {
      *reinterpret_cast<Float4*>(at) = four;
    }
  }
}

// Starts to copy `elements` elements, a multiple of 8.
template <typename T>
__device__ void EaFetchMatrix(const void* from, int elements, T* to) {
  SACCADE_UNROLL_BY(4)
  for (int i = static_cast<int>(threadIdx.x) * kEaChunk<T>; i < elements; i += kEaThreads<T> * kEaChunk<T>) {
    CopyAsync16(to + i, static_cast<const T*>(from) + i, true);
  }
}

// Sets the queries' biases of the 64 key channels, of which those that do not exist take no part in the
// softmax.
template <typename T>
__device__ void EaPlaceQueryBiases(const EfficientAttentionProblem& p, float* query_bias) {
  for (int i = static_cast<int>(threadIdx.x); i < kEaKeys; i += kEaThreads<T>) {
    const auto* const bias = static_cast<const float*>(p.query_bias);
    const float scale = p.softmax ? 1.4426950408889634f : 1.0f;
    const float beyond = p.softmax ? -INFINITY : 0.0f;
    query_bias[i] = i >= p.key_channels ? beyond : bias != nullptr ? bias[i] * scale : 0.0f;
  }
}

// Sets the biases of `width` channels of the result from `first` on.
template <typename T>
__device__ void EaPlaceOutBiases(const EfficientAttentionProblem& p, int first, int width, float* out_bias) {
  for (int i = static_cast<int>(threadIdx.x); i < width; i += kEaThreads<T>) {
    const auto* const bias = p.out_weight != nullptr ? static_cast<const float*>(p.out_bias) : nullptr;
    out_bias[i] = bias != nullptr && first + i < p.out_channels ? bias[first + i] : 0.0f;
  }
}

}  // namespace saccade::kernels
