// The product with a whole map in one kernel: of maps that are not separable, and of small ones. An entry
// depends only on the distance of two positions, so each block computes the map of all distances in shared
// memory and looks entries up as it multiplies. That keeps nothing between calls, and works the same with
// valid extents and a radius that only the device knows. For 16-bit maps without padding whose radius the
// host knows, expatt_map.cuh stores the entries once, rounded and as the fragments that a lane multiplies,
// and blocks read them: the same entries, added in the same order.
//
// A block has 32 positions and up to 64 rows, where a row is a channel of a sample: samples of one extent
// share the map. Each of its eight warps takes 16 of every 128 keys, and the warps' sums are added in their
// order, so the order of a sum depends on the number of valid positions alone. For 16-bit maps the product
// runs on the tensor cores, with entries rounded to 16 bits; results are divided by the sums of the rounded
// entries, so that the map's rows still sum to one.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/common/device.h"
#include "kernels/device/box.cuh"
#include "kernels/device/launch.cuh"
#include "kernels/device/mma.cuh"
#include "kernels/expatt/expatt_block.cuh"
#include "kernels/expatt/expatt_weights.cuh"

namespace saccade::kernels {

// The kernel's argument.
struct ExpattDirect {
  static constexpr int kThreads = 256;
  static constexpr int kWarps = kThreads / kWarp;
  static constexpr int kPositions = 32;
  static constexpr int kWarpKeys = 16;
  static constexpr int kKeys = kWarps * kWarpKeys;
  static constexpr int kMergeRows = 16;
  static constexpr int kSimtRows = 32;
  // The largest map of distances that is kept in shared memory; a larger one is in the workspace.
  static constexpr int kMaxSharedTable = 5632;
  // The most positions of a stored map.
  static constexpr int kMaxMapPositions = 3136;
  static constexpr int kMapGroups = kPositions / 16;  // vectors of a lane for its 4 keys

  // Returns the most valid positions for which a sample takes this product. Above, the products with the
  // factors of a separable map take less time: on an H200 the limit is between 196 and 784 positions for
  // float32, and between 784 and 3136 for 16-bit maps (expatt_emulated_test.cc has the times).
  static int64_t MaxPositions(ExpattKind kind, Dtype dtype) {
    if (!IsSeparable(kind)) return kMaxBlocks;
    return dtype == Dtype::kFloat32 ? 256 : 1024;
  }

  template <typename T>
  static constexpr int kRows = sizeof(T) == 2 ? 64 : kSimtRows;  // of a block

  // `tables` is null if the blocks compute the map of distances. `sixteen_bit`: the type of `from`.
  ExpattDirect(const ExpattProblem& problem, const FeatureMap& from_, const OutputMap& to_,
               const float* bias_, const float* tables_, bool sixteen_bit)
      : p(problem), from(from_), to(to_), bias(bias_), tables(tables_) {
    const bool padded = p.extent.valid != nullptr;
    max_positions = static_cast<int>(MaxPositions(p.kind, p.dtype));
    groups = padded ? p.batch : 1;
    rows = padded ? p.map_channels : p.batch * p.map_channels;
    const int64_t plane = p.extent.size[1] * p.extent.size[2];
    position_blocks = (plane + kPositions - 1) / kPositions;
    key_steps = (plane + kKeys - 1) / kKeys;
    const auto eights = [](int64_t count) { return count % 8 == 0; };
    vectors = sixteen_bit && !padded && from.spatial_stride[2] == 1 &&
              from.spatial_stride[1] == p.extent.size[2] && eights(plane) && eights(from.channel_stride) &&
              eights(from.batch_stride) && reinterpret_cast<uintptr_t>(from.data) % 16 == 0;
  }

  // A stored map: the vectors of every block of positions, step of keys, warp and group, and then the sums of
  // the entries of every position.
  __host__ __device__ int64_t MapVectors() const {
    return position_blocks * key_steps * kWarps * kMapGroups * kWarp;
  }
  int64_t MapBytes() const {
    return MapVectors() * 16 + position_blocks * kPositions * static_cast<int64_t>(sizeof(float));
  }
  // Returns where a lane's vector of a stored map is, for keys from `first` on.
  __device__ int64_t MapVector(int64_t position_block, int first, int group) const {
    const int thread = static_cast<int>(threadIdx.x);
    return ((position_block * key_steps + first / kKeys) * kWarps + thread / kWarp) * kMapGroups * kWarp +
           group * kWarp + thread % kWarp;
  }

  ExpattProblem p;
  FeatureMap from;
  OutputMap to;
  const float* bias;
  const float* tables;  // [groups, H, W], or null
  int64_t groups;       // samples, or 1 if all samples have the same extent
  int64_t rows;         // of a group
  int64_t position_blocks;
  int64_t key_steps;  // of a stored map
  int max_positions;  // samples with more are left to other kernels
  bool vectors;       // eight neighbouring keys can be read at once
};

// Coordinates of a position.
struct alignas(8) ExpattCoordinates {
  int y, x;
};

struct alignas(16) ExpattVector {
  uint32_t words[4];
};

// A block's part of the problem, and its shared memory.
struct ExpattDirectBlock {
  using Size = ExpattDirect;

  __device__ int Count() const { return box.Positions(); }
  // Returns the entry of the map for a position and a key.
  __device__ float Entry(const ExpattCoordinates& a, const ExpattCoordinates& b) const {
    const int dy = a.y - b.y;
    const int dx = a.x - b.x;
    return table[(dy < 0 ? -dy : dy) * table_width + (dx < 0 ? -dx : dx)];
  }

  DeviceBox box;
  const float* table;
  int table_width;
  int rows;                      // from the first row of this pass on
  int64_t* row_at;               // [Rows] offset of each row
  ExpattCoordinates* positions;  // [kPositions]
  ExpattCoordinates* keys;       // [kKeys]
  void* tile;                    // values of the step's keys
  float* weight;                 // [kWarps, kPositions] sums of entries
};

// Sets the coordinates of the step's keys, and returns the offset of the thread's key from its row, or -1.
__device__ inline int64_t ExpattPlaceKey(const ExpattDirectBlock& block, const FeatureMap& from, int key,
                                         ExpattCoordinates* at) {
  *at = {0, 0};
  if (key >= block.Count()) return -1;
  *at = {key / block.box.size[2], key % block.box.size[2]};
  return at->y * from.spatial_stride[1] + at->x * from.spatial_stride[2];
}

// float32 arithmetic: a lane has one position and all rows.
template <typename T, typename In>
struct ExpattDirectSimt {
  using Size = ExpattDirect;
  static constexpr int kRows = Size::kSimtRows;
  static constexpr int kStride =
      kRows + 4;  // floats per key: threads that write four rows hit different banks
  static constexpr int kTileVectors = Size::kKeys * kStride / 4;
  static constexpr int kHeld = kRows * Size::kKeys / 4 / Size::kThreads;
  static constexpr int kRowStep = 4 * Size::kThreads / Size::kKeys;

  __device__ static int Row(int i) { return static_cast<int>(threadIdx.x) / Size::kKeys * 4 + i * kRowStep; }

  // Reads four rows of the thread's key at a time.
  __device__ void Fetch(const ExpattDirectBlock& block, const ExpattDirect& run, int first) {
    const int64_t at =
        ExpattPlaceKey(block, run.from, first + static_cast<int>(threadIdx.x) % Size::kKeys, &key_at);
    const In* data = static_cast<const In*>(run.from.data) + at;
    SACCADE_UNROLL
    for (int i = 0; i < kHeld; ++i) {
      SACCADE_UNROLL
      for (int r = 0; r < 4; ++r) {
        const int row = Row(i) + r;
        held[i][r] = at >= 0 && row < block.rows ? ToFloat(data[block.row_at[row]]) : 0.0f;
      }
    }
  }

  __device__ void Put(const ExpattDirectBlock& block, const ExpattDirect& /*run*/, int /*first*/) const {
    const int key = static_cast<int>(threadIdx.x) % Size::kKeys;
    if (static_cast<int>(threadIdx.x) < Size::kKeys) block.keys[key] = key_at;
    auto* const tile = static_cast<float*>(block.tile);
    SACCADE_UNROLL
    for (int i = 0; i < kHeld; ++i) {
      ExpattVector four;
      __builtin_memcpy(&four, held[i], sizeof(four));
      *reinterpret_cast<ExpattVector*>(tile + key * kStride + Row(i)) = four;
    }
  }

  __device__ void Clear() {
    for (float& sum : sums) sum = 0;
    weight = 0;
  }

  __device__ void Multiply(const ExpattDirectBlock& block, int first) {
    const int begin = static_cast<int>(threadIdx.x) / kWarp * Size::kWarpKeys;
    const int left = block.Count() - first - begin;
    const int keys = left < Size::kWarpKeys ? left : Size::kWarpKeys;
    const auto* const tile = static_cast<const float*>(block.tile) + begin * kStride;
    // Each step is summed separately, so that rounding grows with the number of steps.
    float parts[kRows] = {};
    float part = 0;
    const ExpattCoordinates position = block.positions[threadIdx.x % kWarp];
    SACCADE_UNROLL_BY(4)
    for (int k = 0; k < keys; ++k) {
      const float entry = block.Entry(position, block.keys[begin + k]);
      part += entry;
      SACCADE_UNROLL
      for (int r = 0; r < kRows; r += 4) {
        if (r >= block.rows) break;
        const ExpattVector four = *reinterpret_cast<const ExpattVector*>(tile + k * kStride + r);
        float values[4];
        __builtin_memcpy(values, &four, sizeof(values));
        SACCADE_UNROLL
        for (int i = 0; i < 4; ++i) parts[r + i] += entry * values[i];
      }
    }
    weight += part;
    SACCADE_UNROLL
    for (int r = 0; r < kRows; ++r) sums[r] += parts[r];
  }

  // Stores the warp's sums of rows [first, first + kMergeRows).
  __device__ void Store(int first, float* to) const {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    SACCADE_UNROLL
    for (int r = 0; r < kRows; ++r) {
      if (r / Size::kMergeRows * Size::kMergeRows == first) {
        to[r % Size::kMergeRows * Size::kPositions + lane] = sums[r];
      }
    }
  }
  __device__ void StoreWeights(float* to) const { to[static_cast<int>(threadIdx.x) % kWarp] = weight; }

  float held[kHeld][4];
  float sums[kRows];
  float weight;
  ExpattCoordinates key_at;
};

// Where the entries of the map come from: the block computes the map of distances, or it is in the workspace,
// or the whole map is stored.
enum class ExpattSource { kOwnTable, kTable, kStoredMap };

// The entries for the warp's 16 keys of the step and all positions, as the fragments of mma.cuh; adds them to
// the lane's sums.
template <typename T>
__device__ void ExpattEntries(const ExpattDirectBlock& block, int first,
                              float (&weight)[ExpattDirect::kPositions / 8],
                              uint32_t (&right)[ExpattDirect::kPositions / 8][2]) {
  const int begin = static_cast<int>(threadIdx.x) / kWarp * ExpattDirect::kWarpKeys;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  ExpattCoordinates keys[4];
  bool exists[4];
  SACCADE_UNROLL
  for (int i = 0; i < 4; ++i) {
    const int key = begin + 2 * (lane % 4) + i / 2 * 8 + i % 2;
    keys[i] = block.keys[key];
    exists[i] = first + key < block.Count();
  }
  SACCADE_UNROLL
  for (int n = 0; n < ExpattDirect::kPositions / 8; ++n) {
    const ExpattCoordinates position = block.positions[n * 8 + lane / 4];
    T entries[4];
    SACCADE_UNROLL
    for (int i = 0; i < 4; ++i) {
      const float entry = exists[i] ? block.Entry(position, keys[i]) : 0.0f;
      weight[n] += entry;
      FromFloat(entry, &entries[i]);
    }
    __builtin_memcpy(right[n], entries, sizeof(entries));
  }
}

// Stores the sums of the warp's entries by position.
__device__ inline void ExpattStoreWeights(const float (&weight)[ExpattDirect::kPositions / 8], float* to) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  SACCADE_UNROLL
  for (int n = 0; n < ExpattDirect::kPositions / 8; ++n) {
    float sum = weight[n];
    sum += __shfl_xor_sync(kWholeWarp, sum, 1);
    sum += __shfl_xor_sync(kWholeWarp, sum, 2);
    if (lane % 4 == 0) to[n * 8 + lane / 4] = sum;
  }
}

// Tensor cores. With g and t as in mma.cuh, a lane has the positions 8 n + g of the map's fragments, and the
// sums of positions 8 n + 2 t and their right neighbours.
template <typename T, typename In, bool kStored>
struct ExpattDirectMma {
  using Size = ExpattDirect;
  static constexpr int kRows = Size::kRows<T>;
  static constexpr int kStride =
      Size::kKeys + 8;  // elements per row: fragments' words are in different banks
  static constexpr int kTileVectors = kRows * kStride * 2 / 16;
  static constexpr int kHeld = kRows * Size::kKeys / 8 / Size::kThreads;
  static constexpr int kRowTiles = kRows / 16;
  static constexpr int kPositionTiles = Size::kPositions / 8;

  __device__ static int Group() { return static_cast<int>(threadIdx.x) % kWarp / 4; }
  __device__ static int InGroup() { return static_cast<int>(threadIdx.x) % 4; }

  __device__ void Fetch(const ExpattDirectBlock& block, const ExpattDirect& run, int first) {
    if constexpr (kStored) {
      const int begin = static_cast<int>(threadIdx.x) / kWarp * Size::kWarpKeys;
      SACCADE_UNROLL
      for (int i = 0; i < Size::kMapGroups; ++i) {
        next[i] = {};
        if (first + begin < block.Count()) {
          next[i] = static_cast<const ExpattVector*>(
              run.p.map)[run.MapVector(blockIdx.x % run.position_blocks, first, i)];
        }
      }
    }
    if (sizeof(In) != sizeof(T) || !run.vectors) return;
    SACCADE_UNROLL
    for (int i = 0; i < kHeld; ++i) {
      const int vector = static_cast<int>(threadIdx.x) + i * Size::kThreads;
      const int row = vector / (Size::kKeys / 8);
      const int key = first + vector % (Size::kKeys / 8) * 8;
      held[i] = {};
      if (row < block.rows && key < block.Count()) {
        held[i] = *reinterpret_cast<const ExpattVector*>(static_cast<const In*>(run.from.data) +
                                                         block.row_at[row] + key);
      }
    }
  }

  __device__ void Put(const ExpattDirectBlock& block, const ExpattDirect& run, int first) {
    if constexpr (kStored) {
      SACCADE_UNROLL
      for (int i = 0; i < Size::kMapGroups; ++i) __builtin_memcpy(&right[2 * i], &next[i], sizeof(next[i]));
    }
    const int key = static_cast<int>(threadIdx.x) % Size::kKeys;
    ExpattCoordinates key_at;
    const int64_t at = ExpattPlaceKey(block, run.from, first + key, &key_at);
    if (static_cast<int>(threadIdx.x) < Size::kKeys) block.keys[key] = key_at;
    auto* const tile = static_cast<T*>(block.tile);
    if (sizeof(In) == sizeof(T) && run.vectors) {
      SACCADE_UNROLL
      for (int i = 0; i < kHeld; ++i) {
        const int vector = static_cast<int>(threadIdx.x) + i * Size::kThreads;
        *reinterpret_cast<ExpattVector*>(tile + vector / (Size::kKeys / 8) * kStride +
                                         vector % (Size::kKeys / 8) * 8) = held[i];
      }
      return;
    }
    const In* data = static_cast<const In*>(run.from.data) + at;
    SACCADE_UNROLL_BY(4)
    for (int row = static_cast<int>(threadIdx.x) / Size::kKeys; row < kRows;
         row += Size::kThreads / Size::kKeys) {
      FromFloat(at >= 0 && row < block.rows ? ToFloat(data[block.row_at[row]]) : 0.0f,
                tile + row * kStride + key);
    }
  }

  __device__ void Clear() {
    for (float& sum : weight) sum = 0;
    for (auto& row_tile : sums) {
      for (auto& tile : row_tile) {
        for (float& sum : tile) sum = 0;
      }
    }
  }

  __device__ void Multiply(const ExpattDirectBlock& block, int first) {
    const int begin = static_cast<int>(threadIdx.x) / kWarp * Size::kWarpKeys;
    if (first + begin >= block.Count()) return;
    if constexpr (!kStored) ExpattEntries<T>(block, first, weight, right);
    const T* const tile = static_cast<const T*>(block.tile) + Group() * kStride + begin + 2 * InGroup();
    SACCADE_UNROLL
    for (int m = 0; m < kRowTiles; ++m) {
      if (m * 16 >= block.rows) break;
      const T* const a = tile + m * 16 * kStride;
      const uint32_t left[4] = {LoadPair(a), LoadPair(a + 8 * kStride), LoadPair(a + 8),
                                LoadPair(a + 8 * kStride + 8)};
      SACCADE_UNROLL
      for (int n = 0; n < kPositionTiles; ++n) Mma(sums[m][n], left, right[n], T());
    }
  }

  __device__ void Store(int first, float* to) const {
    SACCADE_UNROLL
    for (int m = 0; m < kRowTiles; ++m) {
      if (m * 16 != first) continue;
      SACCADE_UNROLL
      for (int n = 0; n < kPositionTiles; ++n) {
        SACCADE_UNROLL
        for (int i = 0; i < 4; ++i) {
          to[(Group() + i / 2 * 8) * Size::kPositions + n * 8 + 2 * InGroup() + i % 2] = sums[m][n][i];
        }
      }
    }
  }
  __device__ void StoreWeights(float* to) const {
    if constexpr (!kStored) ExpattStoreWeights(weight, to);
  }

  ExpattVector held[kHeld];
  ExpattVector next[Size::kMapGroups];  // of a stored map, for the step that is fetched
  uint32_t right[kPositionTiles][2];    // the fragments of this step
  float sums[kRowTiles][kPositionTiles][4];
  float weight[kPositionTiles];
};

// Returns the sum of the warps' values, `stride` apart, as a tree: it rounds less than one after the other.
__device__ inline float ExpattSumOfWarps(const float* from, int stride) {
  float sums[ExpattDirect::kWarps];
  SACCADE_UNROLL
  for (int w = 0; w < ExpattDirect::kWarps; ++w) sums[w] = from[w * stride];
  SACCADE_UNROLL
  for (int half = ExpattDirect::kWarps / 2; half > 0; half /= 2) {
    SACCADE_UNROLL
    for (int w = 0; w < half; ++w) sums[w] += sums[w + half];
  }
  return sums[0];
}

// Launched with one block per group, block of rows and block of positions, padding included, and with dynamic
// shared memory for the largest map of distances if kSource is kOwnTable. T is the type of the problem's
// maps.
template <typename T, typename In, typename Out, ExpattSource kSource, bool kTensorCores = sizeof(T) == 2>
__global__ void __launch_bounds__(ExpattDirect::kThreads, 2) ExpattDirectKernel(ExpattDirect run) {
  using Size = ExpattDirect;
  constexpr bool kMma = kTensorCores && kHasMma;
  // Chips without tensor cores for T have no stored maps, and so no launches with them.
  constexpr bool kStored = kSource == ExpattSource::kStoredMap && kMma;
  // The type must depend on kMma: below sm_80 there is no Mma().
  using Math = std::conditional_t<kMma, ExpattDirectMma<T, In, kStored>, ExpattDirectSimt<T, In>>;
  constexpr int kMergeVectors = Size::kWarps * Size::kMergeRows * Size::kPositions / 4;
  constexpr int kVectors = Math::kTileVectors > kMergeVectors ? Math::kTileVectors : kMergeVectors;
  SACCADE_DYNAMIC_SHARED(float, own_table);
  SACCADE_SHARED(ExpattVector, tile, kVectors);
  SACCADE_SHARED(float, weights, Size::kWarps* Size::kPositions);
  SACCADE_SHARED(int64_t, row_at, Math::kRows);
  SACCADE_SHARED(ExpattCoordinates, coordinates, Size::kPositions + Size::kKeys);
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / kWarp;
  const int64_t row_blocks = (run.rows + Size::kRows<T> - 1) / Size::kRows<T>;
  const auto first_position = static_cast<int>(blockIdx.x % run.position_blocks) * Size::kPositions;
  const int64_t group = blockIdx.x / run.position_blocks / row_blocks;
  const int64_t begin = blockIdx.x / run.position_blocks % row_blocks * Size::kRows<T>;
  const int64_t end = run.rows - begin < Size::kRows<T> ? run.rows : begin + Size::kRows<T>;
  const auto channels = static_cast<int>(run.p.map_channels);
  const DeviceBox box(run.p.extent, group);
  const int plane = box.full[1] * box.full[2];
  if (box.Positions() > run.max_positions) return;
  ExpattDirectBlock block = {
      box, own_table, box.size[2], 0, row_at, coordinates, coordinates + Size::kPositions, tile, weights};
  if constexpr (kSource == ExpattSource::kOwnTable) {
    const float sigma = ExpattSigma(run.p);
    for (int i = thread; i < box.Positions(); i += Size::kThreads) {
      own_table[i] = ExpattRounded<T>(
          1 + ExpattWeight(run.p.kind, i / box.size[2], i % box.size[2], box.size[1], box.size[2], sigma));
    }
  } else if constexpr (kSource == ExpattSource::kTable) {
    block.table = run.tables + group * plane;
    block.table_width = box.full[2];
  }
  if (thread < Size::kPositions) {
    const int y = (first_position + thread) / box.full[2];
    const int x = (first_position + thread) % box.full[2];
    // Other positions have no entries in the map of distances, so they take the first position's.
    const bool is_valid = y < box.size[1] && x < box.size[2];
    coordinates[thread] = {is_valid ? y : 0, is_valid ? x : 0};
  }
  // One pass, except where float32 arithmetic replaces tensor cores.
  for (int64_t first_row = begin; first_row < end; first_row += Math::kRows) {
    block.rows = static_cast<int>(end - first_row < Math::kRows ? end - first_row : Math::kRows);
    __syncthreads();
    if (thread < block.rows) {
      const auto row = static_cast<int>(first_row) + thread;
      row_at[thread] =
          (group + row / channels) * run.from.batch_stride + row % channels * run.from.channel_stride;
    }
    __syncthreads();
    Math math;
    math.Clear();
    math.Fetch(block, run, 0);
    for (int first = 0; first < block.Count(); first += Size::kKeys) {
      math.Put(block, run, first);
      __syncthreads();
      math.Fetch(block, run, first + Size::kKeys);
      math.Multiply(block, first);
      __syncthreads();
    }
    math.StoreWeights(weights + warp * Size::kPositions);
    auto* const merged = reinterpret_cast<float*>(tile);
    for (int first = 0; first < block.rows; first += Size::kMergeRows) {
      math.Store(first, merged + warp * Size::kMergeRows * Size::kPositions);
      __syncthreads();
      for (int i = thread; i < Size::kMergeRows * Size::kPositions; i += Size::kThreads) {
        const int row = first + i / Size::kPositions;
        const int position = first_position + i % Size::kPositions;
        if (row >= block.rows || position >= plane) continue;
        const float sum = ExpattSumOfWarps(merged + i, Size::kMergeRows * Size::kPositions);
        float weight;
        if constexpr (kStored) {
          weight = reinterpret_cast<const float*>(static_cast<const ExpattVector*>(run.p.map) +
                                                  run.MapVectors())[position];
        } else {
          weight = ExpattSumOfWarps(weights + i % Size::kPositions, Size::kPositions);
        }
        const int in_group = static_cast<int>(first_row) + row;
        const int channel = in_group % channels;
        const int y = position / box.full[2];
        const int x = position % box.full[2];
        float value = 0;
        if (y < box.size[1] && x < box.size[2]) {
          value = sum / weight + (run.bias == nullptr ? 0 : run.bias[channel]);
        }
        ExpattWriteAt<Out>(run.to, group + in_group / channels, channel, y, x, value);
      }
      __syncthreads();
    }
  }
}

}  // namespace saccade::kernels
