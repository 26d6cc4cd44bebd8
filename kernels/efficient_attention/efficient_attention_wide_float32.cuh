// The kernels of efficient_attention_wide.cuh for float32 maps, in float32 arithmetic: the same steps, with
// the threads of efficient_attention_float32.cuh.
#pragma once

#include "kernels/efficient_attention/efficient_attention_float32.cuh"
#include "kernels/efficient_attention/efficient_attention_tiled_run.cuh"
#include "kernels/efficient_attention/efficient_attention_wide.cuh"

namespace saccade::kernels {

// Where a thread's four logits of key channel y + i are stored.
__device__ inline int64_t EaWideFloatLogits(int64_t tile, int i) {
  return (tile * kEaFour + i) * kEaThreads<float> + threadIdx.x;
}

__device__ inline void EaAddFours(const EaFours<kEaFour>& part, EaFours<kEaFour>& sums) {
  SACCADE_UNROLL
  for (int i = 0; i < kEaFour; ++i) {
    SACCADE_UNROLL
    for (int j = 0; j < kEaFour; ++j) sums.at[i][j] += part.at[i][j];
  }
}

// Launched with one block for each tile of each sample.
template <bool kChannelsLast>
__global__ void __launch_bounds__(kEaThreads<float>, 2) EaWideFloatLogitsKernel(EaTiled run) {
  SACCADE_DYNAMIC_SHARED(float, steps);
  SACCADE_SHARED(float, query_bias, kEaKeys);
  const EfficientAttentionProblem& p = run.p;
  const auto tiles = static_cast<int>(run.tiles);
  const int sample = static_cast<int>(blockIdx.x) / tiles;
  const int first = static_cast<int>(blockIdx.x) % tiles * kEaTile;
  const DeviceBox box(p.extent, sample);
  const EaMap map = EaMapOf<float>(p.x, sample, box, p.channels);
  if (first >= map.count) return;

  EaFours<kEaFour> logits = {};
  EaFours<kEaFour> queries = {};
  EaForSlices<float, kChannelsLast>(
      run, map, first, steps, query_bias,
      [&](const float* key_weight, const float* query_weight, const float* tile) {
        // Each slice is summed separately, so that rounding grows with the number of slices.
        EaFours<kEaFour> part = {};
        EaFloatAddLogits<kEaSlice, kChannelsLast>(key_weight, tile, part);
        EaAddFours(part, logits);
        part = {};
        EaFloatAddQueries<kEaSlice, kChannelsLast>(query_weight, tile, part);
        EaAddFours(part, queries);
      });

  EaFours<kEaFour> coefficients;
  EaFloatQueryCoefficients<kChannelsLast>(p, query_bias, queries, coefficients);
  const int64_t at = blockIdx.x;
  auto* const to =
      static_cast<float*>(run.queries) + at * EaTiled::kTileLogits + EaRow() * kEaKeys + EaColumn();
  SACCADE_UNROLL
  for (int i = 0; i < kEaFour; ++i) {
    Float4 four;
    SACCADE_UNROLL
    for (int j = 0; j < kEaFour; ++j) {
      four.at[j] = logits.at[i][j];
      to[i * kEaKeys + j * kEaSide] = coefficients.at[i][j];
    }
    reinterpret_cast<Float4*>(run.logits)[EaWideFloatLogits(at, i)] = four;
  }
}

// Launched with EaTiled::blocks x slabs x B blocks.
template <bool kChannelsLast>
__global__ void __launch_bounds__(kEaThreads<float>, 1) EaWideFloatGatherKernel(EaTiled run) {
  using Shared = EaWideGatherShared<float, kChannelsLast>;
  SACCADE_DYNAMIC_SHARED(float, tiles);
  const EfficientAttentionProblem& p = run.p;
  const auto [first, split, sample] = EaWidePlace(run.blocks, run.slabs);
  const DeviceBox box(p.extent, sample);
  const EaMap map = EaChannelsOf<float>(EaMapOf<float>(p.x, sample, box, p.channels), first, kEaMaxChannels);
  if (split >= run.Splits(EaTiled::Tiles(map.count))) return;

  EaTile<float, kEaMaxChannels, kChannelsLast>::Fetch(map, split * kEaTile, tiles);
  CommitCopies();
  EaFloatGatherRanges<kEaMaxChannels, kChannelsLast>(
      run, map, sample, split, static_cast<int>(run.width), first, Shared::kTileElements, tiles,
      tiles + 2 * Shared::kTileElements, [&](int number, const float* /*tile*/, EaFours<kEaFour>& logits) {
        SACCADE_UNROLL
        for (int i = 0; i < kEaFour; ++i) {
          const Float4 four =
              reinterpret_cast<const Float4*>(run.logits)[EaWideFloatLogits(sample * run.tiles + number, i)];
          SACCADE_UNROLL
          for (int j = 0; j < kEaFour; ++j) logits.at[i][j] = four.at[j];
        }
      });
}

// Launched with EaTiled::out_blocks x out_slabs x B blocks.
template <bool kChannelsLast>
__global__ void __launch_bounds__(kEaThreads<float>, 1) EaWideFloatApplyKernel(EaTiled run) {
  using Shared = EaWideApplyShared<float, kChannelsLast>;
  using Tile = EaTile<float, kEaMaxChannels, kChannelsLast>;
  SACCADE_DYNAMIC_SHARED(float, folded);
  float* const tile = folded + Shared::kFolded;
  float* const coefficients = tile + Shared::kTileElements;
  float* const out_bias = coefficients + Shared::kCoefficients;
  const EfficientAttentionProblem& p = run.p;
  const auto blocks = static_cast<int>(run.out_blocks);
  const auto [first, block, sample] = EaWidePlace(blocks, run.out_slabs);
  const DeviceBox box(p.extent, sample);
  const EaMap out =
      EaChannelsOf<float>(EaMapOf<float>(p.out, sample, box, p.out_channels), first, kEaMaxChannels);
  int number = static_cast<int>(EaTiled::Tiles(out.count)) - 1 - block;
  if (number < 0) return;

  EaFetchMatrix(static_cast<const float*>(run.folded) + (sample * run.out_width + first) * kEaKeyRow<float>,
                Shared::kFolded, folded);
  EaPlaceOutBiases<float>(p, first, kEaMaxChannels, out_bias);
  for (; number >= 0; number -= blocks) {
    if (p.residual) {
      Tile::Fetch(EaChannelsOf<float>(EaMapOf<float>(p.x, sample, box, p.channels), first, kEaMaxChannels),
                  number * kEaTile, tile);
    }
    const auto* const from =
        static_cast<const float*>(run.queries) + (sample * run.tiles + number) * EaTiled::kTileLogits;
    SACCADE_UNROLL
    for (int i = 0; i < kEaTile * kEaKeys; i += kEaThreads<float> * 4) {
      const int at = i + static_cast<int>(threadIdx.x) * 4;
      CopyAsync16(coefficients + at / kEaKeys * kEaKeyRow<float> + at % kEaKeys, from + at, true);
    }
    CommitCopies();
    WaitForCopies<0>();
    __syncthreads();
    EaFloatResults<kEaMaxChannels, kChannelsLast>(coefficients, folded, out_bias, p.residual, tile);
    __syncthreads();
    Tile::Store(out, number * kEaTile, tile);
  }
}

}  // namespace saccade::kernels
