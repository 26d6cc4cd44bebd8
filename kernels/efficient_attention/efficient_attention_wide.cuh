// The tiled kernels of efficient attention (efficient_attention_tiled_run.cuh) for 16-bit maps of more than
// 256 channels; efficient_attention_wide_float32.cuh has those of float32 maps. The sums of a range are too
// many for a block, and so is a tile of all channels, so
//   weights  rounds the weights of keys and queries, once for all tiles
//   logits   computes the logits of the keys and the coefficients of the queries of a tile, which are stored
//            as the fragments that the next kernels use
//   gather   as for narrow maps, for the slabs of 256 channels one by one, from the stored logits
//   apply    likewise for the slabs of the result
// The fold between them is the one of narrow maps. x is read three times, and 384 bytes of logits are stored
// for a position (float32: 512).
#pragma once

#include "kernels/efficient_attention/efficient_attention_apply.cuh"
#include "kernels/efficient_attention/efficient_attention_gather.cuh"
#include "kernels/efficient_attention/efficient_attention_tiled_run.cuh"

namespace saccade::kernels {

// The rounded weights of a slice of channels: of 64 keys, then of 64 queries.
template <typename T>
struct EaWideWeights {
  static constexpr int kElements = 2 * kEaKeys * kEaSliceRow<T>;
  static constexpr int kBlocks = kElements / kEaThreads<T>;  // of a slice, for EaWideWeightsKernel
  static_assert(kElements % kEaThreads<T> == 0);
};

// Shared memory: several steps, each with its weights and its slice of the tile.
template <typename T, bool kChannelsLast>
struct EaWideLogitsShared {
  // A multiprocessor that has 227 KB then holds two blocks.
  static constexpr int kSteps = sizeof(T) == 2 ? 3 : 2;
  static constexpr int kStep = EaWideWeights<T>::kElements + EaTile<T, kEaSlice, kChannelsLast>::kElements;
  static constexpr size_t kBytes = sizeof(T) * kSteps * kStep;
};

// Shared memory: two tiles, one of which arrives while the other is used, and a tile's coefficients, which
// are in registers for 16-bit maps.
template <typename T, bool kChannelsLast>
struct EaWideGatherShared {
  static constexpr int kTileElements = EaTile<T, kEaMaxChannels, kChannelsLast>::kElements;
  static constexpr int kCoefficients = sizeof(T) == 2 ? 0 : kEaTile * kEaKeyRow<T>;
  static constexpr size_t kBytes = sizeof(T) * (2 * kTileElements + kCoefficients);
};

// Shared memory: the slab's rows of M, a tile, its coefficients if they are not in registers, the result's
// biases.
template <typename T, bool kChannelsLast>
struct EaWideApplyShared {
  static constexpr int kFolded = kEaMaxChannels * kEaKeyRow<T>;
  static constexpr int kTileElements = EaTile<T, kEaMaxChannels, kChannelsLast>::kElements;
  static constexpr int kCoefficients = sizeof(T) == 2 ? 0 : kEaTile * kEaKeyRow<T>;
  static constexpr size_t kBytes =
      sizeof(T) * (kFolded + kTileElements + kCoefficients) + sizeof(float) * kEaMaxChannels;
};

// Launched with one thread for each element.
template <typename T>
__global__ void __launch_bounds__(kEaThreads<T>) EaWideWeightsKernel(EaTiled run) {
  const EfficientAttentionProblem& p = run.p;
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kEaThreads<T> + threadIdx.x;
  const int64_t slice = index / EaWideWeights<T>::kElements;
  const auto row = static_cast<int>(index % EaWideWeights<T>::kElements) / kEaSliceRow<T>;
  const auto column = static_cast<int>(index % kEaSliceRow<T>);
  const int64_t channel = slice * kEaSlice + column;
  const auto* const weight = static_cast<const float*>(row < kEaKeys ? p.key_weight : p.query_weight);
  const bool there = row % kEaKeys < p.key_channels && column < kEaSlice && channel < p.channels;
  FromFloat(there ? weight[row % kEaKeys * p.channels + channel] : 0.0f,
            static_cast<T*>(run.query_weight) + index);
}

// The stored fragments of a lane: the n-th of its groups of 16 bytes is at EaFragment(tile, warp, n, groups).
inline constexpr int kEaLogitGroups = kEaTile / 8;
inline constexpr int kEaQueryGroups = kEaKeys / 16;
__device__ inline int64_t EaFragment(int64_t tile, int warp, int n, int groups) {
  return ((tile * 4 + warp) * groups + n) * kWarp + threadIdx.x % kWarp;
}

// Calls use(key_weight, query_weight, tile) for each slice of the channels, with the positions from `first`
// on, while the next slices arrive in `steps`, which has the size of EaWideLogitsShared. Places the biases of
// the queries before the first call.
template <typename T, bool kChannelsLast, typename Use>
__device__ void EaForSlices(const EaTiled& run, const EaMap& map, int first, T* steps, float* query_bias,
                            const Use& use) {
  using Shared = EaWideLogitsShared<T, kChannelsLast>;
  constexpr int kWeights = EaWideWeights<T>::kElements;
  constexpr int kSteps = Shared::kSteps;
  const auto slices = static_cast<int>(run.Slices());
  const auto fetch = [&](int slice) {
    if (slice < slices) {
      T* const step = steps + slice % kSteps * Shared::kStep;
      EaFetchMatrix(static_cast<const T*>(run.query_weight) + slice * kWeights, kWeights, step);
      EaTile<T, kEaSlice, kChannelsLast>::Fetch(EaChannelsOf<T>(map, slice * kEaSlice, kEaSlice), first,
                                                step + kWeights);
    }
    CommitCopies();
  };
  for (int slice = 0; slice < kSteps - 1; ++slice) fetch(slice);
  EaPlaceQueryBiases<T>(run.p, query_bias);
  for (int slice = 0; slice < slices; ++slice) {
    WaitForCopies<kSteps - 2>();
    __syncthreads();
    // The step that it replaces was used before the barrier.
    fetch(slice + kSteps - 1);
    const T* const step = steps + slice % kSteps * Shared::kStep;
    use(step, step + kEaKeys * kEaSliceRow<T>, step + kWeights);
  }
}

// The place of this block in a grid of `blocks` x `slabs` x B blocks.
struct EaWidePlace {
  __device__ EaWidePlace(int64_t blocks, int64_t slabs)
      : first(static_cast<int>(blockIdx.x) % static_cast<int>(slabs) * kEaMaxChannels),
        block(static_cast<int>(blockIdx.x) / static_cast<int>(slabs) % static_cast<int>(blocks)),
        sample(static_cast<int>(blockIdx.x) / static_cast<int>(slabs) / static_cast<int>(blocks)) {}

  int first;  // channel of the slab
  int block;
  int sample;
};

// Launched with one block for each tile of each sample.
template <typename T, bool kChannelsLast>
__global__ void __launch_bounds__(kEaThreads<T>, 2) EaWideLogitsKernel(EaTiled run) {
  if constexpr (kHasMma) {
    SACCADE_DYNAMIC_SHARED(T, steps);
    SACCADE_SHARED(float, query_bias, kEaKeys);
    const EfficientAttentionProblem& p = run.p;
    const auto tiles = static_cast<int>(run.tiles);
    const int sample = static_cast<int>(blockIdx.x) / tiles;
    const int first = static_cast<int>(blockIdx.x) % tiles * kEaTile;
    const DeviceBox box(p.extent, sample);
    const EaMap map = EaMapOf<T>(p.x, sample, box, p.channels);
    if (first >= map.count) return;

    const int warp = static_cast<int>(threadIdx.x) / kWarp;
    float logits[kEaTile / 8][4];
    float products[kEaKeys / 8][4];
    EaClear(logits);
    EaClear(products);
    EaForSlices<T, kChannelsLast>(
        run, map, first, steps, query_bias, [&](const T* key_weight, const T* query_weight, const T* tile) {
          EaAddLogits<T, kEaSlice, kChannelsLast>(key_weight, tile, warp, logits);
          EaAddQueries<T, kEaSlice, kChannelsLast>(query_weight, tile, warp, products);
        });

    uint32_t queries[kEaKeys / 8][2];
    EaQueryCoefficients<T>(p, query_bias, products, queries);
    const int64_t at = blockIdx.x;
    SACCADE_UNROLL
    for (int n = 0; n < kEaLogitGroups; ++n) {
      Float4 four;
      SACCADE_UNROLL
      for (int i = 0; i < 4; ++i) four.at[i] = logits[n][i];
      reinterpret_cast<Float4*>(run.logits)[EaFragment(at, warp, n, kEaLogitGroups)] = four;
    }
    SACCADE_UNROLL
    for (int n = 0; n < kEaQueryGroups; ++n) {
      Vector16 words;
      __builtin_memcpy(&words, &queries[2 * n], sizeof(words));
      static_cast<Vector16*>(run.queries)[EaFragment(at, warp, n, kEaQueryGroups)] = words;
    }
  }
}

// Launched with EaTiled::blocks x slabs x B blocks. The slabs of a range are neighbours, and so find its
// logits in the cache.
template <typename T, bool kChannelsLast>
__global__ void __launch_bounds__(kEaThreads<T>, 2) EaWideGatherKernel(EaTiled run) {
  if constexpr (kHasMma) {
    SACCADE_DYNAMIC_SHARED(T, tiles);
    const EfficientAttentionProblem& p = run.p;
    const auto [first, split, sample] = EaWidePlace(run.blocks, run.slabs);
    const DeviceBox box(p.extent, sample);
    const EaMap map = EaChannelsOf<T>(EaMapOf<T>(p.x, sample, box, p.channels), first, kEaMaxChannels);
    if (split >= run.Splits(EaTiled::Tiles(map.count))) return;

    EaTile<T, kEaMaxChannels, kChannelsLast>::Fetch(map, split * kEaTile, tiles);
    CommitCopies();
    EaGatherRanges<T, kEaMaxChannels, kChannelsLast>(
        run, map, sample, split, static_cast<int>(run.width), first, tiles,
        [&](int number, const T* /*tile*/, float(&logits)[kEaTile / 8][4]) {
          const int warp = static_cast<int>(threadIdx.x) / kWarp;
          SACCADE_UNROLL
          for (int n = 0; n < kEaLogitGroups; ++n) {
            const Float4 four = reinterpret_cast<const Float4*>(
                run.logits)[EaFragment(sample * run.tiles + number, warp, n, kEaLogitGroups)];
            SACCADE_UNROLL
            for (int i = 0; i < 4; ++i) logits[n][i] = four.at[i];
          }
        });
  }
}

// Launched with EaTiled::out_blocks x out_slabs x B blocks, which take the tiles from the last one on, as the
// narrow apply does.
template <typename T, bool kChannelsLast>
__global__ void __launch_bounds__(kEaThreads<T>, 2) EaWideApplyKernel(EaTiled run) {
  if constexpr (kHasMma) {
    using Shared = EaWideApplyShared<T, kChannelsLast>;
    using Tile = EaTile<T, kEaMaxChannels, kChannelsLast>;
    SACCADE_DYNAMIC_SHARED(T, folded);
    T* const tile = folded + Shared::kFolded;
    auto* const out_bias = reinterpret_cast<float*>(tile + Shared::kTileElements);
    const EfficientAttentionProblem& p = run.p;
    const auto blocks = static_cast<int>(run.out_blocks);
    const auto [first, block, sample] = EaWidePlace(blocks, run.out_slabs);
    const DeviceBox box(p.extent, sample);
    const EaMap out = EaChannelsOf<T>(EaMapOf<T>(p.out, sample, box, p.out_channels), first, kEaMaxChannels);
    int number = static_cast<int>(EaTiled::Tiles(out.count)) - 1 - block;
    if (number < 0) return;

    EaFetchMatrix(static_cast<const T*>(run.folded) + (sample * run.out_width + first) * kEaKeyRow<T>,
                  Shared::kFolded, folded);
    EaPlaceOutBiases<T>(p, first, kEaMaxChannels, out_bias);
    const int warp = static_cast<int>(threadIdx.x) / kWarp;
    for (; number >= 0; number -= blocks) {
      if (p.residual) {
        Tile::Fetch(EaChannelsOf<T>(EaMapOf<T>(p.x, sample, box, p.channels), first, kEaMaxChannels),
                    number * kEaTile, tile);
      }
      CommitCopies();
      uint32_t queries[kEaKeys / 8][2];
      SACCADE_UNROLL
      for (int n = 0; n < kEaQueryGroups; ++n) {
        const Vector16 words = static_cast<const Vector16*>(
            run.queries)[EaFragment(sample * run.tiles + number, warp, n, kEaQueryGroups)];
        __builtin_memcpy(&queries[2 * n], &words, sizeof(words));
      }
      WaitForCopies<0>();
      __syncthreads();
      EaResults<T, kEaMaxChannels, kChannelsLast>(queries, folded, out_bias, p.residual, warp, tile);
      __syncthreads();
      Tile::Store(out, number * kEaTile, tile);
    }
  }
}

}  // namespace saccade::kernels
