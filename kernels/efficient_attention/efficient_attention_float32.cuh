// The gather and the apply of the tiled kernels of efficient attention (efficient_attention_tiled_run.cuh)
// for float32 maps, in float32 arithmetic.
//
// A block's 256 threads form a square of 16 x 16. A thread's row y has four key channels (gather) or four
// positions (apply), and its column x the other side of a product. The 16 threads of a row are half a warp,
// so that they share maxima and sums without a barrier. All operands are read as four floats along one side.
#pragma once

#include <cmath>

#include "kernels/efficient_attention/efficient_attention_tiled_run.cuh"

namespace saccade::kernels {

inline constexpr int kEaSide = 16;  // of the square of threads
inline constexpr int kEaFour = 4;

// Shared memory of both kernels: the weights, a second matrix (apply) or a second tile (gather), the tile,
// the coefficients, and biases.
template <int kChannels, bool kChannelsLast>
struct EaFloatShared {
  static constexpr int kWeightStride = kChannels + kEaChunk<float>;
  static constexpr int kWeights = kEaKeys * kWeightStride;
  static constexpr int kFolded = kChannels * kEaKeyRow<float>;
  static constexpr int kTileElements = EaTile<float, kChannels, kChannelsLast>::kElements;
  static constexpr int kSecond = kFolded > kTileElements ? kFolded : kTileElements;
  static constexpr int kCoefficients = kEaTile * kEaKeyRow<float>;
  static constexpr size_t kBytes =
      sizeof(float) * (kWeights + kSecond + kTileElements + kCoefficients + kEaKeys + kChannels);
};

__device__ inline Float4 LoadFour(const float* at) { return *reinterpret_cast<const Float4*>(at); }

template <int kCount>
struct EaFours {
  float at[kEaFour][kCount];
};

// sums.at[i][j] += left[i][k] right[j][k] for four k; the operands' rows are `left_step` and `right_step`
// apart.
template <int kCount>
__device__ void EaMultiplyFour(const float* left, int left_step, const float* right, int right_step,
                               EaFours<kCount>& sums) {
  Float4 lefts[kEaFour];
  SACCADE_UNROLL
  for (int i = 0; i < kEaFour; ++i) lefts[i] = LoadFour(left + i * left_step);
  SACCADE_UNROLL
  for (int j = 0; j < kCount; ++j) {
    const Float4 four = LoadFour(right + j * right_step);
    SACCADE_UNROLL
    for (int i = 0; i < kEaFour; ++i) {
      SACCADE_UNROLL
      for (int k = 0; k < 4; ++k) sums.at[i][j] += lefts[i].at[k] * four.at[k];
    }
  }
}

// The same, where the right operand's four neighbours are four j instead of k, and its rows are k.
template <int kCount>
__device__ void EaMultiplyFourAcross(const float* left, int left_step, const float* right, int right_step,
                                     int group_step, EaFours<kCount>& sums) {
  Float4 lefts[kEaFour];
  SACCADE_UNROLL
  for (int i = 0; i < kEaFour; ++i) lefts[i] = LoadFour(left + i * left_step);
  SACCADE_UNROLL
  for (int k = 0; k < 4; ++k) {
    SACCADE_UNROLL
    for (int j = 0; j < kCount; j += 4) {
      const Float4 four = LoadFour(right + k * right_step + j / 4 * group_step);
      SACCADE_UNROLL
      for (int i = 0; i < kEaFour; ++i) {
        SACCADE_UNROLL
        for (int e = 0; e < 4; ++e) sums.at[i][j + e] += lefts[i].at[k] * four.at[e];
      }
    }
  }
}

__device__ inline float EaRowMax(float value) {
  for (int lanes = 1; lanes < kEaSide; lanes *= 2)
    value = fmaxf(value, __shfl_xor_sync(kWholeWarp, value, lanes));
  return value;
}
__device__ inline float EaRowSum(float value) {
  for (int lanes = 1; lanes < kEaSide; lanes *= 2) value += __shfl_xor_sync(kWholeWarp, value, lanes);
  return value;
}

// Column x has the positions x, x + 16 and so on of channels-last tiles, and 4x to 4x + 3 of the others; the
// channels likewise, the other way round.
__device__ inline int EaColumn() { return static_cast<int>(threadIdx.x) % kEaSide; }
__device__ inline int EaRow() { return static_cast<int>(threadIdx.x) / kEaSide * kEaFour; }

// logits.at[i][j] += the products of the key channels from the row's first on and the column's positions.
template <int kChannels, bool kChannelsLast>
__device__ void EaFloatAddLogits(const float* weights, const float* tile, EaFours<kEaFour>& logits) {
  using Tile = EaTile<float, kChannels, kChannelsLast>;
  constexpr int kWeightStride = kChannels + kEaChunk<float>;
  const float* const weight = weights + EaRow() * kWeightStride;
  const int x = EaColumn();
  SACCADE_UNROLL_BY(2)
  for (int c = 0; c < kChannels; c += 4) {
    if constexpr (kChannelsLast) {
      EaMultiplyFour(weight + c, kWeightStride, tile + Tile::Index(x, c), kEaSide * Tile::kStride, logits);
    } else {
      EaMultiplyFourAcross(weight + c, kWeightStride, tile + Tile::Index(x * 4, c), Tile::kStride, 0, logits);
    }
  }
}

// As EaGatherRanges() for 16-bit maps. The two tiles are `tile_step` floats apart.
template <int kChannels, bool kChannelsLast, typename AddLogits>
__device__ void EaFloatGatherRanges(const EaTiled& run, const EaMap& map, int sample, int split, int width,
                                    int first, int tile_step, float* tiles, float* coefficients,
                                    const AddLogits& add_logits) {
  using Tile = EaTile<float, kChannels, kChannelsLast>;
  constexpr float kLog2E = 1.4426950408889634f;
  constexpr int kOwn = kChannels / kEaSide;  // channels of a thread
  const EfficientAttentionProblem& p = run.p;
  const auto blocks = static_cast<int>(run.blocks);
  const auto tile_count = static_cast<int>(EaTiled::Tiles(map.count));
  const auto splits = static_cast<int>(run.Splits(tile_count));
  const auto keys = static_cast<int>(p.key_channels);
  const int x = EaColumn();
  const int y = EaRow();
  const auto* const key_bias = static_cast<const float*>(p.key_bias);
  float* const own = coefficients + y * kEaKeyRow<float>;

  EaFours<kOwn> sums = {};
  float tops[kEaFour], totals[kEaFour];
  for (int i = 0; i < kEaFour; ++i) {
    tops[i] = -INFINITY;
    totals[i] = 0;
  }
  int buffer = 0;
  for (int tile = split; split < splits;) {
    const bool last = tile + splits >= tile_count;
    const int next = last ? split + blocks : tile + splits;
    WaitForCopies<0>();
    __syncthreads();
    const float* const current = tiles + buffer * tile_step;
    buffer ^= 1;
    // The block's last tile has no copies after it, so that none is under way when the block ends.
    if (!last || next < splits) Tile::Fetch(map, next * kEaTile, tiles + buffer * tile_step);
    CommitCopies();

    EaFours<kEaFour> logits = {};
    add_logits(tile, current, logits);
    const int count = map.count - tile * kEaTile;
    SACCADE_UNROLL
    for (int i = 0; i < kEaFour; ++i) {
      float shrink = 1;
      if (p.softmax) {
        float top = -INFINITY;
        SACCADE_UNROLL
        for (int j = 0; j < kEaFour; ++j) {
          const int position = kChannelsLast ? x + j * kEaSide : x * 4 + j;
          if (position >= count) logits.at[i][j] = -INFINITY;
          top = fmaxf(top, logits.at[i][j]);
        }
        top = fmaxf(tops[i], EaRowMax(top) * kLog2E);
        shrink = exp2f(tops[i] - top);  // zero for the first tile
        tops[i] = top;
      }
      totals[i] *= shrink;
      SACCADE_UNROLL
      for (int j = 0; j < kOwn; ++j) sums.at[i][j] *= shrink;
      SACCADE_UNROLL
      for (int j = 0; j < kEaFour; ++j) {
        const int position = kChannelsLast ? x + j * kEaSide : x * 4 + j;
        const float bias = key_bias != nullptr && y + i < keys ? key_bias[y + i] : 0.0f;
        const float linear = position < count ? logits.at[i][j] + bias : 0.0f;
        const float value = p.softmax ? exp2f(fmaf(logits.at[i][j], kLog2E, -tops[i])) : linear;
        totals[i] += value;
        own[i * kEaKeyRow<float> + position] = value;
      }
    }
    __syncthreads();
    SACCADE_UNROLL_BY(2)
    for (int n = 0; n < kEaTile; n += 4) {
      if constexpr (kChannelsLast) {
        EaMultiplyFourAcross(own + n, kEaKeyRow<float>, current + Tile::Index(n, x * 4), Tile::kStride,
                             kEaSide * 4, sums);
      } else {
        EaMultiplyFour(own + n, kEaKeyRow<float>, current + Tile::Index(n, x), kEaSide * Tile::kStride, sums);
      }
    }
    tile = next;
    if (!last) continue;
    float* const slot = run.partial + (sample * run.slots + split) * run.PartialFloats();
    for (int i = 0; i < kEaFour; ++i) {
      SACCADE_UNROLL
      for (int j = 0; j < kOwn; ++j) {
        const int channel = kChannelsLast ? j / 4 * kEaSide * 4 + x * 4 + j % 4 : x + j * kEaSide;
        slot[(y + i) * width + first + channel] = sums.at[i][j];
        sums.at[i][j] = 0;
      }
      const float total = EaRowSum(totals[i]);
      if (x == 0 && first == 0) {
        slot[kEaKeys * width + y + i] = tops[i];
        slot[kEaKeys * (width + 1) + y + i] = total;
      }
      tops[i] = -INFINITY;
      totals[i] = 0;
    }
    split += blocks;
  }
}

// Launched with EaTiled::blocks x B blocks.
template <int kChannels, bool kChannelsLast>
__global__ void __launch_bounds__(kEaThreads<float>, 1) EaFloatGatherKernel(EaTiled run) {
  using Shared = EaFloatShared<kChannels, kChannelsLast>;
  SACCADE_DYNAMIC_SHARED(float, weights);
  float* const tiles = weights + Shared::kWeights;
  float* const coefficients = tiles + Shared::kSecond + Shared::kTileElements;
  const EfficientAttentionProblem& p = run.p;
  const auto blocks = static_cast<int>(run.blocks);
  const int sample = static_cast<int>(blockIdx.x) / blocks;
  const DeviceBox box(p.extent, sample);
  const EaMap map = EaMapOf<float>(p.x, sample, box, p.channels);
  const int split = static_cast<int>(blockIdx.x) % blocks;
  if (split >= run.Splits(EaTiled::Tiles(map.count))) return;

  EaTile<float, kChannels, kChannelsLast>::Fetch(map, split * kEaTile, tiles);
  CommitCopies();
  RoundMatrix(static_cast<const float*>(p.key_weight), static_cast<int>(p.key_channels), map.channels,
              kEaKeys, Shared::kWeightStride, weights);
  EaFloatGatherRanges<kChannels, kChannelsLast>(
      run, map, sample, split, kChannels, 0, Shared::kSecond, tiles, coefficients,
      [&](int /*number*/, const float* tile, EaFours<kEaFour>& logits) {
        EaFloatAddLogits<kChannels, kChannelsLast>(weights, tile, logits);
      });
}

// The products of the row's positions 4y to 4y + 3 and the column's key channels x, x + 16 and so on are
// added to queries.at[j][i] if rows of the tile are channels, else to queries.at[i][j].
template <int kChannels, bool kChannelsLast>
__device__ void EaFloatAddQueries(const float* weights, const float* tile, EaFours<kEaFour>& queries) {
  using Tile = EaTile<float, kChannels, kChannelsLast>;
  constexpr int kWeightStride = kChannels + kEaChunk<float>;
  const int x = EaColumn();
  const int y = EaRow();
  SACCADE_UNROLL_BY(2)
  for (int c = 0; c < kChannels; c += 4) {
    const float* const weight = weights + x * kWeightStride + c;
    if constexpr (kChannelsLast) {
      EaMultiplyFour(tile + Tile::Index(y, c), Tile::kStride, weight, kEaSide * kWeightStride, queries);
    } else {
      EaMultiplyFourAcross(weight, kEaSide * kWeightStride, tile + Tile::Index(y, c), Tile::kStride, 0,
                           queries);
    }
  }
}

// Turns the products into coefficients.at[i][j], of position y + i and key channel x + 16 j.
template <bool kChannelsLast>
__device__ void EaFloatQueryCoefficients(const EfficientAttentionProblem& p, const float* query_bias,
                                         const EaFours<kEaFour>& queries, EaFours<kEaFour>& coefficients) {
  constexpr float kLog2E = 1.4426950408889634f;
  const float scale = p.softmax ? kLog2E : 1.0f;
  const int x = EaColumn();
  SACCADE_UNROLL
  for (int i = 0; i < kEaFour; ++i) {
    float values[kEaFour];
    float top = -INFINITY;
    SACCADE_UNROLL
    for (int j = 0; j < kEaFour; ++j) {
      const float query = kChannelsLast ? queries.at[i][j] : queries.at[j][i];
      values[j] = query * scale + query_bias[x + j * kEaSide];
      top = fmaxf(top, values[j]);
    }
    float factor = 1;
    if (p.softmax) {
      top = EaRowMax(top);
      float total = 0;
      SACCADE_UNROLL
      for (int j = 0; j < kEaFour; ++j) {
        const float query = kChannelsLast ? queries.at[i][j] : queries.at[j][i];
        total += values[j] = exp2f(fmaf(query, scale, -top) + query_bias[x + j * kEaSide]);
      }
      factor = 1 / EaRowSum(total);
    }
    SACCADE_UNROLL
    for (int j = 0; j < kEaFour; ++j) coefficients.at[i][j] = values[j] * factor;
  }
}

// Replaces the thread's part of the tile by its results. `coefficients` are those of the tile's positions, in
// rows of keys. All threads have read the tile before the last barrier.
template <int kChannels, bool kChannelsLast>
__device__ void EaFloatResults(const float* coefficients, const float* folded, const float* out_bias,
                               bool residual, float* tile) {
  using Tile = EaTile<float, kChannels, kChannelsLast>;
  constexpr int kOwn = kChannels / kEaSide;
  const int x = EaColumn();
  const int y = EaRow();
  EaFours<kOwn> results = {};
  SACCADE_UNROLL_BY(2)
  for (int k = 0; k < kEaKeys; k += 4) {
    EaMultiplyFour(coefficients + y * kEaKeyRow<float> + k, kEaKeyRow<float>,
                   folded + x * kEaKeyRow<float> + k, kEaSide * kEaKeyRow<float>, results);
  }
  SACCADE_UNROLL
  for (int j = 0; j < kOwn; ++j) {
    const int channel = x + j * kEaSide;
    SACCADE_UNROLL
    for (int i = 0; i < kEaFour; ++i) {
      float* const at = tile + Tile::Index(y + i, channel);
      *at = results.at[i][j] + out_bias[channel] + (residual ? *at : 0.0f);
    }
  }
}

// Launched with EaTiled::blocks x B blocks.
template <int kChannels, bool kChannelsLast>
__global__ void __launch_bounds__(kEaThreads<float>, 1) EaFloatApplyKernel(EaTiled run) {
  using Shared = EaFloatShared<kChannels, kChannelsLast>;
  using Tile = EaTile<float, kChannels, kChannelsLast>;
  SACCADE_DYNAMIC_SHARED(float, weights);
  float* const folded = weights + Shared::kWeights;
  float* const tile = folded + Shared::kSecond;
  float* const coefficients = tile + Shared::kTileElements;
  float* const query_bias = coefficients + Shared::kCoefficients;
  float* const out_bias = query_bias + kEaKeys;
  const EfficientAttentionProblem& p = run.p;
  const auto blocks = static_cast<int>(run.blocks);
  const int sample = static_cast<int>(blockIdx.x) / blocks;
  const DeviceBox box(p.extent, sample);
  const EaMap map = EaMapOf<float>(p.x, sample, box, p.channels);
  const EaMap out = EaMapOf<float>(p.out, sample, box, p.out_channels);
  int number = static_cast<int>(EaTiled::Tiles(map.count)) - 1 - static_cast<int>(blockIdx.x) % blocks;
  if (number < 0) return;

  EaFetchMatrix(run.query_weight, Shared::kWeights, weights);
  EaFetchMatrix(static_cast<const float*>(run.folded) + static_cast<int64_t>(sample) * Shared::kFolded,
                Shared::kFolded, folded);
  EaPlaceQueryBiases<float>(p, query_bias);
  EaPlaceOutBiases<float>(p, 0, kChannels, out_bias);
  float* const own = coefficients + EaRow() * kEaKeyRow<float> + EaColumn();

  for (; number >= 0; number -= blocks) {
    Tile::Fetch(map, number * kEaTile, tile);
    CommitCopies();
    WaitForCopies<0>();
    __syncthreads();
    EaFours<kEaFour> queries = {};
    EaFloatAddQueries<kChannels, kChannelsLast>(weights, tile, queries);
    EaFours<kEaFour> values;
    EaFloatQueryCoefficients<kChannelsLast>(p, query_bias, queries, values);
    SACCADE_UNROLL
    for (int i = 0; i < kEaFour; ++i) {
      SACCADE_UNROLL
      for (int j = 0; j < kEaFour; ++j) own[i * kEaKeyRow<float> + j * kEaSide] = values.at[i][j];
    }
    __syncthreads();
    EaFloatResults<kChannels, kChannelsLast>(coefficients, folded, out_bias, p.residual, tile);
    __syncthreads();
    Tile::Store(out, number * kEaTile, tile);
  }
}

}  // namespace saccade::kernels
