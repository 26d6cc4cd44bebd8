// The third of the tiled kernels of efficient attention (efficient_attention_tiled_run.cuh), for 16-bit maps.
#pragma once

#include <cmath>

#include "kernels/efficient_attention/efficient_attention_tiled_run.cuh"

namespace saccade::kernels {

// Shared memory: the queries' weights, M, a tile, the queries' and the result's biases.
template <typename T, int kChannels, bool kChannelsLast>
struct EaApplyShared {
  static constexpr int kWeightStride = kChannels + kEaChunk<T>;
  static constexpr int kWeights = kEaKeys * kWeightStride;
  static constexpr int kFolded = kChannels * kEaKeyRow<T>;
  static constexpr int kTileElements = EaTile<T, kChannels, kChannelsLast>::kElements;
  static constexpr size_t kBytes =
      sizeof(T) * (kWeights + kFolded + kTileElements) + sizeof(float) * (kEaKeys + kChannels);
};

// The softmax over each head's keys, of which every lane has two neighbours in each of the groups n of 8, for
// the positions g and g + 8. `logits` are base-2 exponents.
__device__ inline void EaSoftmaxOfKeys(int head_keys, float (&logits)[kEaKeys / 8][4]) {
  uint32_t starts = 0;  // bit n: a head starts at group n
  for (int n = 0; n < kEaKeys; n += head_keys) starts |= 1u << n / 8;
  SACCADE_UNROLL
  for (int r = 0; r < 2; ++r) {
    // Maxima, and then sums, of the head's groups up to n; after the second loop, of all the head's groups.
    float all[kEaKeys / 8];
    const auto spread = [&](auto combine) {
      SACCADE_UNROLL
      for (int n = 1; n < kEaKeys / 8; ++n) {
        if ((starts >> n & 1) == 0) all[n] = combine(all[n - 1], all[n]);
      }
      SACCADE_UNROLL
      for (int n = kEaKeys / 8 - 1; n > 0; --n) {
        if ((starts >> n & 1) == 0) all[n - 1] = all[n];
      }
      SACCADE_UNROLL
      for (int n = 0; n < kEaKeys / 8; ++n) {
        for (int lanes = 1; lanes < 4; lanes *= 2)
          all[n] = combine(all[n], __shfl_xor_sync(kWholeWarp, all[n], lanes));
      }
    };
    SACCADE_UNROLL
    for (int n = 0; n < kEaKeys / 8; ++n) all[n] = fmaxf(logits[n][2 * r], logits[n][2 * r + 1]);
    spread([](float a, float b) { return fmaxf(a, b); });
    SACCADE_UNROLL
    for (int n = 0; n < kEaKeys / 8; ++n) {
      // Heads that do not exist have no finite logit; their coefficients are zero.
      const float top = all[n] == -INFINITY ? 0.0f : all[n];
      SACCADE_UNROLL
      for (int i = 2 * r; i < 2 * r + 2; ++i) logits[n][i] = exp2f(logits[n][i] - top);
      all[n] = logits[n][2 * r] + logits[n][2 * r + 1];
    }
    spread([](float a, float b) { return a + b; });
    SACCADE_UNROLL
    for (int n = 0; n < kEaKeys / 8; ++n) {
      const float factor = all[n] == 0.0f ? 0.0f : 1 / all[n];
      logits[n][2 * r] *= factor;
      logits[n][2 * r + 1] *= factor;
    }
  }
}

// The same for one head.
__device__ inline void EaSoftmaxOfAllKeys(float (&logits)[kEaKeys / 8][4]) {
  SACCADE_UNROLL
  for (int r = 0; r < 2; ++r) {
    float top = -INFINITY;
    SACCADE_UNROLL
    for (int n = 0; n < kEaKeys / 8; ++n) top = fmaxf(top, fmaxf(logits[n][2 * r], logits[n][2 * r + 1]));
    for (int lanes = 1; lanes < 4; lanes *= 2) top = fmaxf(top, __shfl_xor_sync(kWholeWarp, top, lanes));
    float total = 0;
    SACCADE_UNROLL
    for (int n = 0; n < kEaKeys / 8; ++n) {
      SACCADE_UNROLL
      for (int i = 2 * r; i < 2 * r + 2; ++i) {
        logits[n][i] = exp2f(logits[n][i] - top);
        total += logits[n][i];
      }
    }
    for (int lanes = 1; lanes < 4; lanes *= 2) total += __shfl_xor_sync(kWholeWarp, total, lanes);
    const float factor = 1 / total;
    SACCADE_UNROLL
    for (int n = 0; n < kEaKeys / 8; ++n) {
      logits[n][2 * r] *= factor;
      logits[n][2 * r + 1] *= factor;
    }
  }
}

// queries[n] += the products of 16 positions and the key channels 8n to 8n + 7.
template <typename T, int kChannels, bool kChannelsLast>
__device__ void EaAddQueries(const T* weights, const T* tile, int warp, float (&queries)[kEaKeys / 8][4]) {
  using Tile = EaTile<T, kChannels, kChannelsLast>;
  SACCADE_UNROLL_BY(4)
  for (int channel = 0; channel < kChannels; channel += 16) {
    uint32_t left[4];
    Tile::LoadLeft(tile, warp * 16, channel, left);
    SACCADE_UNROLL
    for (int n = 0; n < kEaKeys; n += 16) {
      uint32_t right[4];
      LoadMatrixRight(weights, kChannels + kEaChunk<T>, n, channel, right);
      MmaPair<T>(queries[n / 8], queries[n / 8 + 1], left, right);
    }
  }
}

// Turns the products into coefficients, and rounds those of the positions g and g + 8.
template <typename T>
__device__ void EaQueryCoefficients(const EfficientAttentionProblem& p, const float* bias,
                                    float (&queries)[kEaKeys / 8][4], uint32_t (&rounded)[kEaKeys / 8][2]) {
  constexpr float kLog2E = 1.4426950408889634f;
  const float scale = p.softmax ? kLog2E : 1.0f;
  const int column = static_cast<int>(threadIdx.x) % 4 * 2;
  SACCADE_UNROLL
  for (int n = 0; n < kEaKeys / 8; ++n) {
    SACCADE_UNROLL
    for (int i = 0; i < 4; ++i) queries[n][i] = fmaf(queries[n][i], scale, bias[n * 8 + column + i % 2]);
  }
  if (p.softmax && p.heads == 1) {
    EaSoftmaxOfAllKeys(queries);
  } else if (p.softmax) {
    EaSoftmaxOfKeys(static_cast<int>(p.key_channels / p.heads), queries);
  }
  SACCADE_UNROLL
  for (int n = 0; n < kEaKeys / 8; ++n) {
    SACCADE_UNROLL
    for (int r = 0; r < 2; ++r) rounded[n][r] = RoundPair(queries[n][2 * r], queries[n][2 * r + 1], T());
  }
}

// Adds the bias, and x if `residual`, to two neighbours of the result, which replace them in the tile.
template <typename T>
__device__ void EaStorePair(float first, float second, bool residual, T* at) {
  if (residual) {
    T pair[2];
    const uint32_t word = LoadPair(at);
    __builtin_memcpy(pair, &word, sizeof(word));
    first += ToFloat(pair[0]);
    second += ToFloat(pair[1]);
  }
  StorePair(RoundPair(first, second, T()), at);
}

// Replaces the warp's 16 positions of the tile by their results. All lanes have read them by then: the
// products are of the whole warp. `queries` are the rounded coefficients of the positions g and g + 8.
template <typename T, int kChannels, bool kChannelsLast>
__device__ void EaResults(const uint32_t (&queries)[kEaKeys / 8][2], const T* folded, const float* bias,
                          bool residual, int warp, T* tile) {
  using Tile = EaTile<T, kChannels, kChannelsLast>;
  const int g = static_cast<int>(threadIdx.x) % kWarp / 4;
  const int column = static_cast<int>(threadIdx.x) % 4 * 2;
  SACCADE_UNROLL_BY(4)
  for (int channel = 0; channel < kChannels; channel += 16) {
    float first[4] = {};
    float second[4] = {};
    SACCADE_UNROLL
    for (int k = 0; k < kEaKeys; k += 16) {
      const uint32_t(&low)[2] = queries[k / 8];
      const uint32_t(&high)[2] = queries[k / 8 + 1];
      uint32_t matrix[4];
      if constexpr (kChannelsLast) {
        // Rows are positions, and the two sums are of 8 channels each.
        const uint32_t left[4] = {low[0], low[1], high[0], high[1]};
        LoadMatrixRight(folded, kEaKeyRow<T>, channel, k, matrix);
        MmaPair<T>(first, second, left, matrix);
      } else {
        // Rows are channels, and the two sums are of 8 positions each.
        const uint32_t right[4] = {low[0], high[0], low[1], high[1]};
        LoadMatrixLeft(folded, kEaKeyRow<T>, channel, k, matrix);
        MmaPair<T>(first, second, matrix, right);
      }
    }
    SACCADE_UNROLL
    for (int r = 0; r < 2; ++r) {
      if constexpr (kChannelsLast) {
        const int position = warp * 16 + g + r * 8;
        const float* const at = bias + channel + column;
        EaStorePair(first[2 * r] + at[0], first[2 * r + 1] + at[1], residual,
                    tile + Tile::Index(position, channel + column));
        EaStorePair(second[2 * r] + at[8], second[2 * r + 1] + at[9], residual,
                    tile + Tile::Index(position, channel + column + 8));
      } else {
        const int at = channel + g + r * 8;
        const float shift = bias[at];
        EaStorePair(first[2 * r] + shift, first[2 * r + 1] + shift, residual,
                    tile + Tile::Index(warp * 16 + column, at));
        EaStorePair(second[2 * r] + shift, second[2 * r + 1] + shift, residual,
                    tile + Tile::Index(warp * 16 + column + 8, at));
      }
    }
  }
}

// Launched with EaTiled::blocks x B blocks. The tiles are processed from the last one on, because
// the gather ended there, and the cache may still hold them.
template <typename T, int kChannels, bool kChannelsLast>
__global__ void __launch_bounds__(kEaThreads<T>, 2) EaApplyKernel(EaTiled run) {
  if constexpr (kHasMma) {
    using Shared = EaApplyShared<T, kChannels, kChannelsLast>;
    using Tile = EaTile<T, kChannels, kChannelsLast>;
    SACCADE_DYNAMIC_SHARED(T, weights);
    T* const folded = weights + Shared::kWeights;
    T* const tile = folded + Shared::kFolded;
    auto* const query_bias = reinterpret_cast<float*>(tile + Shared::kTileElements);
    float* const out_bias = query_bias + kEaKeys;
    const EfficientAttentionProblem& p = run.p;
    const auto blocks = static_cast<int>(run.blocks);
    const int sample = static_cast<int>(blockIdx.x) / blocks;
    const DeviceBox box(p.extent, sample);
    const EaMap map = EaMapOf<T>(p.x, sample, box, p.channels);
    const EaMap out = EaMapOf<T>(p.out, sample, box, p.out_channels);
    int number = static_cast<int>(EaTiled::Tiles(map.count)) - 1 - static_cast<int>(blockIdx.x) % blocks;
    if (number < 0) return;

    EaFetchMatrix(run.query_weight, Shared::kWeights, weights);
    EaFetchMatrix(static_cast<const T*>(run.folded) + static_cast<int64_t>(sample) * Shared::kFolded,
                  Shared::kFolded, folded);
    const int thread = static_cast<int>(threadIdx.x);
    EaPlaceQueryBiases<T>(p, query_bias);
    EaPlaceOutBiases<T>(p, 0, kChannels, out_bias);

    const int warp = thread / kWarp;
    for (; number >= 0; number -= blocks) {
      Tile::Fetch(map, number * kEaTile, tile);
      CommitCopies();
      WaitForCopies<0>();
      __syncthreads();
      float products[kEaKeys / 8][4];
      uint32_t queries[kEaKeys / 8][2];
      EaClear(products);
      EaAddQueries<T, kChannels, kChannelsLast>(weights, tile, warp, products);
      EaQueryCoefficients<T>(p, query_bias, products, queries);
      EaResults<T, kChannels, kChannelsLast>(queries, folded, out_bias, p.residual, warp, tile);
      __syncthreads();
      Tile::Store(out, number * kEaTile, tile);
    }
  }
}

}  // namespace saccade::kernels
