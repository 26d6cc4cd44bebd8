// The kernels of the attention core. All grids are one-dimensional, so that only the total number of blocks
// is bounded.
#pragma once

#include "kernels/device/attend_block.cuh"

namespace saccade::kernels {

// kTensorCores requests tensor cores; chips without suitable ones use float32 arithmetic.
template <typename T, bool kTensorCores>
using MathOf = std::conditional_t<kTensorCores && kHasMma, MmaMath<T>, SimtMath<T>>;

#define SACCADE_ATTEND_SHARED(T)                                                                 \
  SACCADE_SHARED(Float4, left_tile, OperandTile<T>::kWords);                                     \
  SACCADE_SHARED(Float4, right_tile, OperandTile<T>::kWords);                                    \
  SACCADE_SHARED(Float4, logit_tile, kTile* kLogitStride / 4);                                   \
  SACCADE_SHARED(Float4, half_tile,                                                              \
                 sizeof(T) == 4 ? 1 : kTile / OperandTile<T>::kDepth * OperandTile<T>::kWords);  \
  SACCADE_SHARED(float, numbers, 4 * kTile);                                                     \
  SACCADE_SHARED(int64_t, offsets, 3 * kTile);                                                   \
  const AttendShared<T> shared = {reinterpret_cast<T*>(left_tile),                               \
                                  reinterpret_cast<T*>(right_tile),                              \
                                  reinterpret_cast<T*>(sizeof(T) == 4 ? logit_tile : half_tile), \
                                  reinterpret_cast<float*>(logit_tile),                          \
                                  numbers,                                                       \
                                  numbers + kTile,                                               \
                                  numbers + 2 * kTile,                                           \
                                  numbers + 3 * kTile,                                           \
                                  offsets,                                                       \
                                  offsets + kTile,                                               \
                                  offsets + 2 * kTile}

// Sets at[i] to the offset of row first + i, or -1 from `end` on. Done by threads 64 * by to 64 * by + 63.
__device__ inline void PlaceRows(int by, const DeviceBox& box, const int64_t (&stride)[kMaxSpatialDims],
                                 int first, int end, int64_t* at) {
  const int i = static_cast<int>(threadIdx.x) - by * kTile;
  if (i >= 0 && i < kTile) at[i] = first + i < end ? box.OffsetOf(first + i, stride) : -1;
}

// The part of the problem that a block computes.
struct AttendPlace {
  __device__ explicit AttendPlace(const Attend& run) {
    const auto chunks = static_cast<unsigned>(run.value_chunks);
    const auto slots = static_cast<unsigned>(run.slots);
    const auto heads = static_cast<unsigned>(run.p.heads);
    chunk = static_cast<int>(blockIdx.x % chunks);
    slot = static_cast<int>(blockIdx.x / chunks % slots);
    matrix = static_cast<int>(blockIdx.x / chunks / slots);
    sample = matrix / static_cast<int>(heads);
    head = matrix % static_cast<int>(heads);
  }
  __device__ float* Slot(const Attend& run) const {
    return run.partial == nullptr ? nullptr : run.partial + (matrix * run.slots + slot) * run.PartialFloats();
  }
  __device__ int FirstChannel() const { return chunk * Attend::kMaxValueTiles * kTile; }
  int chunk, slot, matrix, sample, head;
};

// Sets a tile's keys: the offsets of the keys and of their values, and their biases.
template <typename T>
__device__ void PlaceKeys(const Attend& run, const AttendPlace& place, const AttendShared<T>& shared,
                          const DeviceBox& keys, const KeyTile& tile) {
  const AttendProblem& p = run.p;
  const int end = tile.first + tile.count;
  PlaceRows(1, keys, p.logits.data != nullptr ? p.logits_key_stride : p.k.row_stride, tile.first, end,
            shared.key_at);
  PlaceRows(2, keys, p.v.row_stride, tile.first, end, shared.value_at);
  const auto key = static_cast<int>(threadIdx.x);
  if (key >= kTile) return;
  const bool biased = p.key_bias != nullptr && key < tile.count;
  shared.bias[key] =
      biased ? p.key_bias[place.head * run.all_keys + tile.first + key] * run.bias_scale : 0.0f;
}

// Returns the values of 64 channels for the tile's keys from `key` on.
template <typename T>
__device__ TileSource ValuesAt(const Attend& run, const AttendPlace& place, const AttendShared<T>& shared,
                               int channel, int key) {
  return SourceOf<T>(run.p.v, place.sample, place.head, channel, run.p.value_channels, shared.value_at + key);
}

// Stores sums * the rows' factors from the block's registers: in a slot of the workspace if `partial`,
// otherwise through the epilogue in the result.
template <typename T, typename Math>
__device__ void StoreSums(const Attend& run, const AttendPlace& place, const AttendShared<T>& shared,
                          int64_t first_channel, int rows, bool partial, const float (&sums)[kSums]) {
  const AttendProblem& p = run.p;
  __syncthreads();
  SACCADE_UNROLL
  for (int i = 0; i < kSums; ++i) shared.logits[Math::Column(i) * kLogitStride + Math::Row(i)] = sums[i];
  __syncthreads();
  float* const slot = place.Slot(run);
  SACCADE_UNROLL_BY(4)
  for (int i = 0; i < kSums; ++i) {
    const int element = static_cast<int>(threadIdx.x) + i * kBlockThreads;
    const int row = run.out_adjacent ? element % kTile : element / kTile;
    const int column = run.out_adjacent ? element / kTile : element % kTile;
    const int64_t channel = first_channel + column;
    if (row >= rows || channel >= p.value_channels) continue;
    const float value = shared.logits[column * kLogitStride + row];
    if (partial) {
      slot[run.PartialAt(row, channel)] = value;
    } else {
      StoreResult<T>(p, place.sample, place.head, channel, p.value_channels,
                     shared.key_at[row] + channel * p.out.channel_stride, shared.value_at[row],
                     value * shared.correction[row]);
    }
  }
}

// sums += coefficients * values of one tile of keys. `values` has already fetched the first values.
template <typename T, typename Math, int kTiles>
__device__ void MultiplyValues(const Attend& run, const AttendPlace& place, const AttendShared<T>& shared,
                               const KeyTile& tile, TileTransfer<T, Math, false>& values,
                               float (&sums)[kTiles][kSums]) {
  constexpr int kDepth = OperandTile<T>::kDepth;
  const AttendProblem& p = run.p;
  SACCADE_UNROLL
  for (int t = 0; t < kTiles; ++t) {
    const int channel = place.FirstChannel() + t * kTile;
    if (channel >= p.value_channels) break;
    // Float32 sums of a tile are added as a whole: added one by one, some hundred keys lose three bits.
    constexpr bool kApart = std::is_same_v<T, float>;
    float apart[kSums] = {};
    if (!kApart && tile.step == KeyStep::kOnline) {
      SACCADE_UNROLL
      for (int s = 0; s < kSums; ++s) sums[t][s] *= shared.correction[Math::Row(s)];
    }
    for (int key = 0; key < tile.count; key += kDepth) {
      if (t > 0 || key > 0) __syncthreads();
      values.Put(shared.right);
      __syncthreads();
      if (key + kDepth < tile.count) {
        values.Fetch(ValuesAt(run, place, shared, channel, key + kDepth));
      } else if (t + 1 < kTiles && channel + kTile < p.value_channels) {
        values.Fetch(ValuesAt(run, place, shared, channel + kTile, 0));
      }
      const int depth = tile.count - key < kDepth ? tile.count - key : kDepth;
      Math::Multiply(shared.coefficients + Math::Index(0, key), shared.right, depth,
                     kApart ? apart : sums[t]);
    }
    if (!kApart) continue;
    SACCADE_UNROLL
    for (int s = 0; s < kSums; ++s) {
      const float factor = tile.step == KeyStep::kOnline ? shared.correction[Math::Row(s)] : 1.0f;
      sums[t][s] = fmaf(sums[t][s], factor, apart[s]);
    }
  }
}

// Writes a block's maxima and sums of coefficients to the workspace if `partial`. Otherwise writes the
// results' factors and offsets to shared memory.
template <typename T>
__device__ void FinishRows(const Attend& run, const AttendPlace& place, const AttendShared<T>& shared,
                           const DeviceBox& queries, int first_query, int keys, bool partial) {
  const AttendProblem& p = run.p;
  const auto row = static_cast<int>(threadIdx.x);
  const int query = first_query + row;
  if (row >= kTile || query >= queries.Positions()) return;
  const float total = shared.total[row];
  if (partial) {
    float* const slot = place.Slot(run) + kTile * p.value_channels;
    if (place.chunk == 0) slot[row] = shared.top[row];
    if (place.chunk == 0) slot[kTile + row] = total;
    return;
  }
  // Grouped softmax results are already normalised.
  const float factor = p.softmax && p.key_group == 0 ? (keys > 0 ? 1 / total : 0) : MeanFactor(p, keys);
  shared.correction[row] = factor;
  if (p.row_sums != nullptr && place.chunk == 0) {
    p.row_sums[place.matrix * run.all_queries + query] = total * factor;
  }
  shared.key_at[row] = queries.OffsetOf(query, p.out.row_stride);
  shared.value_at[row] = queries.OffsetOf(query, p.residual.row_stride);
}

// Launched with one block per sample, head, slot and chunk of values.
template <typename T, int kTiles, bool kTensorCores>
__global__ void __launch_bounds__(kBlockThreads, 2) AttendKernel(Attend run) {
  using Math = MathOf<T, kTensorCores>;
  SACCADE_ATTEND_SHARED(T);
  const AttendProblem& p = run.p;
  const AttendPlace place(run);
  const DeviceBox queries(p.queries, place.sample);
  const DeviceBox keys(p.keys, place.sample);
  const int query_count = queries.Positions();
  const int query_tiles = KeyWalk::Tiles(query_count);
  const auto splits =
      p.key_group != 0 ? 1 : static_cast<int>(Attend::Splits(query_tiles, KeyWalk::Tiles(keys.Positions())));
  if (place.slot >= query_tiles * splits) return;
  const int first_query = place.slot % query_tiles * kTile;
  const KeyWalk walk(p, keys.Positions(), place.slot / query_tiles, splits);
  const bool given = p.logits.data != nullptr;

  if (threadIdx.x < kTile) {
    shared.top[threadIdx.x] = -INFINITY;
    shared.total[threadIdx.x] = 0;
  }
  PlaceRows(3, queries, given ? p.logits.row_stride : p.q.row_stride, first_query, query_count,
            shared.query_at);
  const int own_query = first_query + static_cast<int>(threadIdx.x) / 4;
  const bool biased = p.query_bias != nullptr && own_query < query_count;
  const float query_bias = biased ? p.query_bias[place.head * run.all_queries + own_query] : 0.0f;
  float sums[kTiles][kSums] = {};
  TileTransfer<T, Math, false> values(Attend::PositionsAdjacent(p.v));
  for (int i = 0; i < walk.tiles; ++i) {
    const KeyTile tile = walk.At(p, i);
    PlaceKeys(run, place, shared, keys, tile);
    __syncthreads();
    if (given) {
      LoadLogits<T>(run, shared, place.sample, place.head);
    } else {
      MultiplyKeys<T, Math>(p, shared, place.sample, place.head, 0, static_cast<int>(Attend::Planes(p.depth)),
                            i > 0 && p.depth <= OperandTile<T>::kDepth);
    }
    const bool results = tile.step != KeyStep::kStatistics;
    if (results) values.Fetch(ValuesAt(run, place, shared, place.FirstChannel(), 0));
    __syncthreads();
    Coefficients<T, Math>(run, shared, tile, query_bias);
    __syncthreads();
    if (results) MultiplyValues<T, Math>(run, place, shared, tile, values, sums);
  }

  // MultiplyValues() reads the factors of the last tile, which FinishRows() replaces.
  __syncthreads();
  FinishRows(run, place, shared, queries, first_query, keys.Positions(), splits > 1);
  const int rows = query_count - first_query < kTile ? query_count - first_query : kTile;
  SACCADE_UNROLL
  for (int t = 0; t < kTiles; ++t) {
    const int channel = place.FirstChannel() + t * kTile;
    if (channel < p.value_channels) {
      StoreSums<T, Math>(run, place, shared, channel, rows, splits > 1, sums[t]);
    }
  }
}

// Stores the logits themselves through the epilogue; keys are the result's channels. Launched with one block
// per sample, head, plane, tile of queries and tile of keys.
template <typename T, bool kTensorCores>
__global__ void __launch_bounds__(kBlockThreads, 2) AttendProductKernel(Attend run) {
  using Math = MathOf<T, kTensorCores>;
  SACCADE_ATTEND_SHARED(T);
  const AttendProblem& p = run.p;
  const int key_tiles = KeyWalk::Tiles(static_cast<int>(run.all_keys));
  auto block = static_cast<int>(blockIdx.x);
  const int first_key = block % key_tiles * kTile;
  block /= key_tiles;
  const int first_query = block % static_cast<int>(run.query_tiles) * kTile;
  block /= static_cast<int>(run.query_tiles);
  const int plane = block % run.planes;
  block /= run.planes;
  const int sample = block / static_cast<int>(p.heads);
  const int head = block % static_cast<int>(p.heads);
  const DeviceBox queries(p.queries, sample);
  const DeviceBox keys(p.keys, sample);
  const int query_count = queries.Positions();
  const int key_count = keys.Positions();
  if (first_query >= query_count || first_key >= key_count) return;

  PlaceRows(0, queries, p.q.row_stride, first_query, query_count, shared.query_at);
  PlaceRows(1, keys, p.k.row_stride, first_key, key_count, shared.key_at);
  PlaceRows(2, keys, p.logits_key_stride, first_key, key_count, shared.value_at);
  __syncthreads();
  const int end_plane = run.planes > 1 ? plane + 1 : static_cast<int>(Attend::Planes(p.depth));
  MultiplyKeys<T, Math>(p, shared, sample, head, plane, end_plane, false);
  __syncthreads();
  for (int i = 0; i < kSums; ++i) {
    const int element = static_cast<int>(threadIdx.x) + i * kBlockThreads;
    const int row = run.out_adjacent ? element % kTile : element / kTile;
    const int key = run.out_adjacent ? element / kTile : element % kTile;
    const int query = first_query + row;
    if (query >= query_count || first_key + key >= key_count) continue;
    float value = shared.logits[key * kLogitStride + row] * p.scale;
    if (p.key_bias != nullptr && plane == 0) value += p.key_bias[head * run.all_keys + first_key + key];
    if (p.query_bias != nullptr && plane == 0) value += p.query_bias[head * run.all_queries + query];
    StoreResult<T>(
        p, sample, head, first_key + key, run.all_keys,
        queries.OffsetOf(query, p.out.row_stride) + shared.value_at[key] + plane * run.plane_stride,
        queries.OffsetOf(query, p.residual.row_stride), value);
  }
}

#undef SACCADE_ATTEND_SHARED

}  // namespace saccade::kernels
