// The first of the tiled kernels of efficient attention (efficient_attention_tiled_run.cuh), for 16-bit maps.
#pragma once

#include <cmath>

#include "kernels/efficient_attention/efficient_attention_tiled_run.cuh"

namespace saccade::kernels {

// Shared memory: the weights, then two tiles, one of which arrives while the other is used.
template <typename T, int kChannels, bool kChannelsLast>
struct EaGatherShared {
  static constexpr int kWeightStride = kChannels + kEaChunk<T>;
  static constexpr size_t kBytes =
      sizeof(T) * (kEaKeys * kWeightStride + 2 * EaTile<T, kChannels, kChannelsLast>::kElements);
};

// What a warp knows of a range: for 16 key channels, of which a lane has g and g + 8 (mma.cuh).
template <int kChannels>
struct EaRange {
  __device__ void Start() {
    EaClear(sums);
    for (int r = 0; r < 2; ++r) {
      top[r] = -INFINITY;
      total[r] = 0;
    }
  }
  float sums[kChannels / 8][4];
  float top[2];    // largest logit so far, a base-2 exponent
  float total[2];  // of the coefficients of the lane's own positions
};

// logits[n] += the products of 16 key channels and the positions 8n to 8n + 7.
template <typename T, int kChannels, bool kChannelsLast>
__device__ void EaAddLogits(const T* weights, const T* tile, int warp, float (&logits)[kEaTile / 8][4]) {
  using Tile = EaTile<T, kChannels, kChannelsLast>;
  SACCADE_UNROLL_BY(4)
  for (int channel = 0; channel < kChannels; channel += 16) {
    uint32_t left[4];
    LoadMatrixLeft(weights, kChannels + kEaChunk<T>, warp * 16, channel, left);
    SACCADE_UNROLL
    for (int n = 0; n < kEaTile; n += 16) {
      uint32_t right[4];
      Tile::template LoadRight</*kChannelsAreK=*/true>(tile, channel, n, right);
      MmaPair<T>(logits[n / 8], logits[n / 8 + 1], left, right);
    }
  }
}

// Turns the logits of `count` positions into coefficients.
template <int kChannels>
__device__ void EaCoefficients(bool softmax, const float (&bias)[2], int count, EaRange<kChannels>& range,
                               float (&logits)[kEaTile / 8][4]) {
  constexpr float kLog2E = 1.4426950408889634f;
  const int column = static_cast<int>(threadIdx.x) % 4 * 2;
  if (!softmax) {
    SACCADE_UNROLL
    for (int n = 0; n < kEaTile / 8; ++n) {
      SACCADE_UNROLL
      for (int i = 0; i < 4; ++i) {
        logits[n][i] = n * 8 + column + i % 2 < count ? logits[n][i] + bias[i / 2] : 0.0f;
        range.total[i / 2] += logits[n][i];
      }
    }
    return;
  }
  if (count < kEaTile) {
    SACCADE_UNROLL
    for (int n = 0; n < kEaTile / 8; ++n) {
      SACCADE_UNROLL
      for (int i = 0; i < 4; ++i) {
        if (n * 8 + column + i % 2 >= count) logits[n][i] = -INFINITY;
      }
    }
  }
  float shrink[2];
  SACCADE_UNROLL
  for (int r = 0; r < 2; ++r) {
    float top = logits[0][2 * r];
    SACCADE_UNROLL
    for (int n = 0; n < kEaTile / 8; ++n) top = fmaxf(top, fmaxf(logits[n][2 * r], logits[n][2 * r + 1]));
    for (int lanes = 1; lanes < 4; lanes *= 2) top = fmaxf(top, __shfl_xor_sync(kWholeWarp, top, lanes));
    top = fmaxf(range.top[r], top * kLog2E);
    shrink[r] = exp2f(range.top[r] - top);  // zero for the first tile
    range.top[r] = top;
    range.total[r] *= shrink[r];
    SACCADE_UNROLL
    for (int n = 0; n < kEaTile / 8; ++n) {
      SACCADE_UNROLL
      for (int i = 2 * r; i < 2 * r + 2; ++i) {
        logits[n][i] = exp2f(fmaf(logits[n][i], kLog2E, -top));
        range.total[r] += logits[n][i];
      }
    }
  }
  if (shrink[0] == 1.0f && shrink[1] == 1.0f) return;
  SACCADE_UNROLL
  for (int n = 0; n < kChannels / 8; ++n) {
    SACCADE_UNROLL
    for (int i = 0; i < 4; ++i) range.sums[n][i] *= shrink[i / 2];
  }
}

// range.sums += coefficients * the tile.
template <typename T, int kChannels, bool kChannelsLast>
__device__ void EaAddTile(const float (&coefficients)[kEaTile / 8][4], const T* tile,
                          EaRange<kChannels>& range) {
  using Tile = EaTile<T, kChannels, kChannelsLast>;
  SACCADE_UNROLL
  for (int k = 0; k < kEaTile; k += 16) {
    const float(&low)[4] = coefficients[k / 8];
    const float(&high)[4] = coefficients[k / 8 + 1];
    const uint32_t left[4] = {RoundPair(low[0], low[1], T()), RoundPair(low[2], low[3], T()),
                              RoundPair(high[0], high[1], T()), RoundPair(high[2], high[3], T())};
    SACCADE_UNROLL
    for (int n = 0; n < kChannels; n += 16) {
      uint32_t right[4];
      Tile::template LoadRight</*kChannelsAreK=*/false>(tile, k, n, right);
      MmaPair<T>(range.sums[n / 8], range.sums[n / 8 + 1], left, right);
    }
  }
}

// Writes a range's channels from `first` on to its part of the workspace, whose rows have `width` sums. The
// maxima and the sums of coefficients are written with the first channel.
template <int kChannels>
__device__ void EaStoreRange(const EaRange<kChannels>& range, int warp, int width, int first, float* slot) {
  struct alignas(8) Two {
    float at[2];
  };
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  SACCADE_UNROLL
  for (int r = 0; r < 2; ++r) {
    const int key = warp * 16 + lane / 4 + r * 8;
    float* const row = slot + key * width + first + lane % 4 * 2;
    SACCADE_UNROLL
    for (int n = 0; n < kChannels / 8; ++n) {
      *reinterpret_cast<Two*>(row + n * 8) = {range.sums[n][2 * r], range.sums[n][2 * r + 1]};
    }
    float total = range.total[r];
    for (int lanes = 1; lanes < 4; lanes *= 2) total += __shfl_xor_sync(kWholeWarp, total, lanes);
    if (lane % 4 == 0 && first == 0) {
      slot[kEaKeys * width + key] = range.top[r];
      slot[kEaKeys * (width + 1) + key] = total;
    }
  }
}

// The biases of a lane's key channels.
__device__ inline void EaKeyBiases(const EfficientAttentionProblem& p, int warp, float (&bias)[2]) {
  const int key = warp * 16 + static_cast<int>(threadIdx.x) % kWarp / 4;
  const auto* const all = static_cast<const float*>(p.key_bias);
  for (int r = 0; r < 2; ++r) bias[r] = all != nullptr && key + 8 * r < p.key_channels ? all[key + 8 * r] : 0;
}

// Gathers the ranges `split`, split + run.blocks and so on of a sample, for the channels of `map`, which are
// the sample's from `first` on. The copies of the first tile have been committed. add_logits(number, tile,
// logits) adds the logits of a tile to zeros.
template <typename T, int kChannels, bool kChannelsLast, typename AddLogits>
__device__ void EaGatherRanges(const EaTiled& run, const EaMap& map, int sample, int split, int width,
                               int first, T* tiles, const AddLogits& add_logits) {
  using Tile = EaTile<T, kChannels, kChannelsLast>;
  const EfficientAttentionProblem& p = run.p;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const auto blocks = static_cast<int>(run.blocks);
  const auto tile_count = static_cast<int>(EaTiled::Tiles(map.count));
  const auto splits = static_cast<int>(run.Splits(tile_count));
  float bias[2];
  EaKeyBiases(p, warp, bias);
  EaRange<kChannels> range;
  range.Start();
  int buffer = 0;
  for (int tile = split; split < splits;) {
    // The next tile: of this range, or the first one of the block's next range.
    const bool last = tile + splits >= tile_count;
    const int next = last ? split + blocks : tile + splits;
    WaitForCopies<0>();
    __syncthreads();
    T* const current = tiles + buffer * Tile::kElements;
    buffer ^= 1;
    // The block's last tile has no copies after it, so that none is under way when the block ends.
    if (!last || next < splits) Tile::Fetch(map, next * kEaTile, tiles + buffer * Tile::kElements);
    CommitCopies();

    float logits[kEaTile / 8][4];
    EaClear(logits);
    add_logits(tile, current, logits);
    EaCoefficients(p.softmax, bias, map.count - tile * kEaTile, range, logits);
    EaAddTile<T, kChannels, kChannelsLast>(logits, current, range);
    tile = next;
    if (last) {
      EaStoreRange(range, warp, width, first,
                   run.partial + (sample * run.slots + split) * run.PartialFloats());
      range.Start();
      split += blocks;
    }
  }
}

// Launched with EaTiled::blocks x B blocks.
template <typename T, int kChannels, bool kChannelsLast>
__global__ void __launch_bounds__(kEaThreads<T>, 2) EaGatherKernel(EaTiled run) {
  if constexpr (kHasMma) {
    using Shared = EaGatherShared<T, kChannels, kChannelsLast>;
    using Tile = EaTile<T, kChannels, kChannelsLast>;
    SACCADE_DYNAMIC_SHARED(T, weights);
    T* const tiles = weights + kEaKeys * Shared::kWeightStride;
    const EfficientAttentionProblem& p = run.p;
    const auto blocks = static_cast<int>(run.blocks);
    const int sample = static_cast<int>(blockIdx.x) / blocks;
    const DeviceBox box(p.extent, sample);
    const EaMap map = EaMapOf<T>(p.x, sample, box, p.channels);
    const int split = static_cast<int>(blockIdx.x) % blocks;
    if (split >= run.Splits(EaTiled::Tiles(map.count))) return;

    Tile::Fetch(map, split * kEaTile, tiles);
    CommitCopies();
    RoundMatrix(static_cast<const float*>(p.key_weight), static_cast<int>(p.key_channels), map.channels,
                kEaKeys, Shared::kWeightStride, weights);
    EaGatherRanges<T, kChannels, kChannelsLast>(
        run, map, sample, split, kChannels, 0, tiles,
        [&](int /*number*/, const T* tile, float(&logits)[kEaTile / 8][4]) {
          EaAddLogits<T, kChannels, kChannelsLast>(weights, tile, static_cast<int>(threadIdx.x) / kWarp,
                                                   logits);
        });
  }
}

}  // namespace saccade::kernels
