// Siamese attention on CUDA: three kernels on raw pointers, compiled by nvcc and, for the emulator, by g++.
//   reduce        blocks x samples: scores w^T k, and each block's sums of v and of v times the scores
//   coefficients  adds the blocks' sums in their order; computes a slope and an offset per channel
//   apply         out = slope * score + offset (+ x)
// Where a map is aligned, 16 bytes of neighbouring positions (or channels, if those are adjacent) are loaded
// and stored at once. Sums are float32. No atomics: the order of every sum depends on positions and channels
// alone. Kernel boundaries replace grid-wide barriers, so that the kernels work in graphs and with any
// launch.
#pragma once

#include "kernels/common/device.h"
#include "kernels/device/box.cuh"
#include "kernels/sao/sao_problem.h"

namespace saccade::kernels {

// The argument of the kernels: the problem, its sizes and its workspace.
struct SaoCuda {
  static constexpr int kTile = 64;      // positions that a block processes at a time
  static constexpr int kThreads = 256;  // so four threads share a position's channels
  static constexpr int kGroups = kThreads / kTile;
  static constexpr int kWarps = kThreads / kWarp;
  static constexpr int kMaxSplits = 128;
  static constexpr int kChannelsPerBlock = 32;  // of the coefficients kernel
  static constexpr int kChannelsApplied =
      64;                                 // by a block of the apply kernel, if it need not compute scores
  static constexpr int kHeadsAtOnce = 4;  // whose weighted sums a thread adds up together

  // `workspace` has FloatsOfWorkspace() floats, which may be uninitialised; null only to measure.
  SaoCuda(const SaoProblem& problem, float* workspace) : p(problem) {
    module = p.value_weight != nullptr;
    keep_scores = p.global_term && SameMap(p.q, p.k) && p.query_scores == p.key_scores;
    splits = Splits(p.positions);
    moment_rows = !p.global_term ? 1 : module ? 1 + static_cast<int>(p.heads) : 2;
    applied = keep_scores ? kChannelsApplied : p.channels;
    if (workspace == nullptr) return;
    moments = workspace;
    slope = moments + p.batch * splits * moment_rows * p.channels;
    offset = slope + p.batch * p.channels;
    scores = offset + p.batch * p.channels;
  }

  int64_t FloatsOfWorkspace() const {
    return p.batch * (splits * moment_rows + 2) * p.channels +
           (keep_scores ? p.batch * p.heads * p.positions : 0);
  }

  // Returns the number of splits: enough to occupy a GPU, and few enough that adding their sums stays cheap.
  __host__ __device__ static int64_t Splits(int64_t positions) {
    const int64_t tiles = (positions + kTile - 1) / kTile;
    return tiles < 1 ? 1 : tiles > kMaxSplits ? kMaxSplits : tiles;
  }

  SaoProblem p;
  bool module;
  bool keep_scores;
  int64_t splits;
  int moment_rows;
  int64_t applied;           // channels of a block of the apply kernel
  float* moments = nullptr;  // [B, splits, moment_rows, C]
  float* slope = nullptr;    // [B, C]
  float* offset = nullptr;   // [B, C]
  float* scores = nullptr;   // [B, heads, N], by index of the valid position, if keep_scores
};

template <typename T>
__device__ const T* SampleOf(const FlatMap& map, int64_t sample) {
  return static_cast<const T*>(map.data) + sample * map.batch_stride;
}

// Computes scores[h * kTile + i] for the tile's positions. Every thread passes its own position (-1: none,
// score 0) and must call it; ends with a barrier.
template <typename T>
__device__ void TileScores(const SaoCuda& run, const FlatMap& map, const void* folded, int64_t sample,
                           int64_t position, float* scores) {
  SACCADE_SHARED(float, parts, SaoCuda::kThreads);
  const int lane = threadIdx.x % SaoCuda::kTile;
  const int group = threadIdx.x / SaoCuda::kTile;
  const T* x = SampleOf<T>(map, sample) + (position < 0 ? 0 : position) * map.position_stride;
  const int64_t head_channels = run.p.channels / run.p.heads;
  for (int64_t head = 0; head < run.p.heads; ++head) {
    // Over all channels if folded, otherwise over the head's own.
    const auto* w = folded == nullptr ? static_cast<const float*>(run.p.w)
                                      : static_cast<const float*>(folded) + head * run.p.channels;
    const int64_t begin = folded == nullptr ? head * head_channels : 0;
    const int64_t end = folded == nullptr ? begin + head_channels : run.p.channels;
    float sum = 0;
    if (position >= 0) {
      SACCADE_UNROLL_BY(8)
      for (int64_t c = begin + group; c < end; c += SaoCuda::kGroups) {
        sum += w[c] * ToFloat(x[c * map.channel_stride]);
      }
    }
    parts[threadIdx.x] = sum;
    __syncthreads();
    if (group == 0) {
      float total = parts[lane];
      for (int g = 1; g < SaoCuda::kGroups; ++g) total += parts[g * SaoCuda::kTile + lane];
      scores[head * SaoCuda::kTile + lane] = total;
    }
    __syncthreads();
  }
}

template <typename T>
using SaoVector = Neighbours<T, kIn16Bytes<T>>;

template <typename T>
__device__ bool SaoVectorsFit(const void* data, int64_t stride, int64_t batch_stride) {
  constexpr int kCount = kIn16Bytes<T>;
  return reinterpret_cast<uintptr_t>(data) % 16 == 0 && stride % kCount == 0 && batch_stride % kCount == 0;
}

// Sums of one channel over a tile, plain and weighted with the scores of several heads. Each is the sum of
// four partial sums, of every fourth position, whichever way the positions are loaded.
struct SaoSums {
  static constexpr int kParts = 4;
  float plain[kParts] = {};
  float weighted[SaoCuda::kHeadsAtOnce][kParts] = {};

  // `scores` are those of the position and of the first head; `rows` leads from there to each head.
  __device__ void Add(float value, int position, const float* scores, const int* rows) {
    plain[position % kParts] += value;
    SACCADE_UNROLL
    for (int h = 0; h < SaoCuda::kHeadsAtOnce; ++h) {
      weighted[h][position % kParts] += value * scores[rows[h]];
    }
  }
  __device__ static float Total(const float* parts) { return (parts[0] + parts[1]) + (parts[2] + parts[3]); }
};

// The positions of a tile: where they lie, and how many there are.
struct SaoTile {
  const int64_t* at;  // in shared memory
  int count;
  bool adjacent;  // at[i] is at[0] + i, and vectors of the maps of v are aligned
};

// Adds a tile's positions of one channel.
template <typename T>
__device__ void AddTile(const FlatMap& map, const T* channel, const SaoTile& tile, const float* scores,
                        const int* rows, SaoSums* sums) {
  constexpr int kCount = kIn16Bytes<T>;
  int i = 0;
  if (tile.adjacent) {
    const T* first = channel + tile.at[0];
    SACCADE_UNROLL_BY(4)
    for (; i + kCount <= tile.count; i += kCount) {
      const auto values = *reinterpret_cast<const SaoVector<T>*>(first + i);
      SACCADE_UNROLL
      for (int k = 0; k < kCount; ++k) sums->Add(ToFloat(values.of[k]), k, scores + i + k, rows);
    }
  }
  for (; i + SaoSums::kParts <= tile.count; i += SaoSums::kParts) {
    SACCADE_UNROLL
    for (int k = 0; k < SaoSums::kParts; ++k) {
      sums->Add(ToFloat(channel[tile.at[i + k] * map.position_stride]), k, scores + i + k, rows);
    }
  }
  SACCADE_UNROLL
  for (int k = 0; k < SaoSums::kParts - 1; ++k) {
    if (i + k < tile.count) {
      sums->Add(ToFloat(channel[tile.at[i + k] * map.position_stride]), k, scores + i + k, rows);
    }
  }
}

// Adds a tile to the split's moments, or begins them with it. Each thread has channels of its own.
template <typename T>
__device__ void TileMoments(const SaoCuda& run, int64_t sample, const SaoTile& tile, const float* scores,
                            bool begins, float* moments) {
  const SaoProblem& p = run.p;
  const auto keep = [&](int64_t row, int64_t c, float sum) {
    float* to = moments + row * p.channels + c;
    *to = begins ? sum : *to + sum;
  };
  const auto channels = static_cast<int>(p.channels);
  const auto head_channels = static_cast<int>(p.channels / p.heads);
  for (int c = static_cast<int>(threadIdx.x); c < channels; c += SaoCuda::kThreads) {
    const T* channel = SampleOf<T>(p.v, sample) + c * p.v.channel_stride;
    // In the module every channel needs every head's scores, because the value transform mixes channels.
    const int weighted = run.moment_rows - 1;
    const int own_head = run.module ? 0 : c / head_channels;
    int done = 0;
    do {
      int rows[SaoCuda::kHeadsAtOnce];
      for (int h = 0; h < SaoCuda::kHeadsAtOnce; ++h) {
        const int head = done + h < weighted ? done + h : done;
        rows[h] = weighted == 0 ? 0 : (own_head + head) * SaoCuda::kTile;
      }
      SaoSums sums;
      AddTile<T>(p.v, channel, tile, scores, rows, &sums);
      if (done == 0) keep(0, c, SaoSums::Total(sums.plain));
      SACCADE_UNROLL
      for (int h = 0; h < SaoCuda::kHeadsAtOnce; ++h) {
        if (done + h < weighted) keep(1 + done + h, c, SaoSums::Total(sums.weighted[h]));
      }
      done += SaoCuda::kHeadsAtOnce;
    } while (done < weighted);
  }
}

// grid (splits, batch), with dynamic shared memory for heads * kTile floats.
template <typename T>
__global__ void __launch_bounds__(SaoCuda::kThreads) SaoReduceKernel(SaoCuda run) {
  SACCADE_DYNAMIC_SHARED(float, scores);
  SACCADE_SHARED(int64_t, at, SaoCuda::kTile);
  const SaoProblem& p = run.p;
  const int64_t sample = blockIdx.y;
  const int64_t split = blockIdx.x;
  const DeviceBox box(p.extent, sample);
  const int64_t positions = box.Positions();
  const int64_t tiles = (positions + SaoCuda::kTile - 1) / SaoCuda::kTile;
  const int64_t splits = SaoCuda::Splits(positions);
  const int64_t tiles_per_split = (tiles + splits - 1) / splits;
  float* moments = run.moments + (sample * run.splits + split) * run.moment_rows * p.channels;
  const int64_t first_tile = split * tiles_per_split;
  if (first_tile >= tiles) {
    // Splits without positions are cleared, because FoldSplits adds all of them.
    for (int64_t i = threadIdx.x; i < run.moment_rows * p.channels; i += SaoCuda::kThreads) moments[i] = 0;
    return;
  }
  if (!p.global_term) {
    // Nothing is weighted then, but the sums read scores.
    for (int64_t i = threadIdx.x; i < p.heads * SaoCuda::kTile; i += SaoCuda::kThreads) scores[i] = 0;
  }
  const bool adjacent = positions == p.positions && p.v.position_stride == 1 &&
                        SaoVectorsFit<T>(p.v.data, p.v.channel_stride, p.v.batch_stride);
  for (int64_t t = first_tile; t < first_tile + tiles_per_split && t < tiles; ++t) {
    const int64_t first = t * SaoCuda::kTile;
    const int64_t left = positions - first;
    const int64_t number = first + threadIdx.x % SaoCuda::kTile;
    const int64_t position = number < positions ? box.PositionOf(number) : -1;
    if (threadIdx.x < SaoCuda::kTile) at[threadIdx.x] = position;
    if (p.global_term) {
      TileScores<T>(run, p.k, p.key_scores, sample, position, scores);
      if (run.keep_scores && number < positions) {
        for (int64_t h = threadIdx.x / SaoCuda::kTile; h < p.heads; h += SaoCuda::kGroups) {
          run.scores[(sample * p.heads + h) * p.positions + number] =
              scores[h * SaoCuda::kTile + threadIdx.x % SaoCuda::kTile];
        }
      }
    }
    __syncthreads();
    const SaoTile tile = {at, static_cast<int>(left < SaoCuda::kTile ? left : SaoCuda::kTile), adjacent};
    TileMoments<T>(run, sample, tile, scores, t == first_tile, moments);
    __syncthreads();
  }
}

// Returns the sum over all splits of one row of moments, in order.
__device__ inline float FoldSplits(const SaoCuda& run, int64_t sample, int64_t row, int64_t channel) {
  float sum = 0;
  const float* part = run.moments + (sample * run.splits * run.moment_rows + row) * run.p.channels + channel;
  SACCADE_UNROLL_BY(16)
  for (int64_t split = 0; split < run.splits; ++split) sum += part[split * run.moment_rows * run.p.channels];
  return sum;
}

// Bare operator: means over the valid positions, for channels [begin, end).
__device__ inline void MeanCoefficients(const SaoCuda& run, int64_t sample, int64_t begin, int64_t end) {
  const int64_t positions = DeviceBox(run.p.extent, sample).Positions();
  const float count = static_cast<float>(positions < 1 ? 1 : positions);
  for (int64_t c = begin + threadIdx.x; c < end; c += SaoCuda::kThreads) {
    run.slope[sample * run.p.channels + c] = FoldSplits(run, sample, 0, c) / count;
    run.offset[sample * run.p.channels + c] =
        run.p.global_term ? FoldSplits(run, sample, 1, c) / count : 0.0f;
  }
}

// Module: applies the value transform to two vectors instead of to every position. `sums` has room for 2 C
// floats.
__device__ inline void ModuleCoefficients(const SaoCuda& run, int64_t sample, int64_t head, int64_t begin,
                                          int64_t end, float* sums) {
  const SaoProblem& p = run.p;
  for (int64_t c = threadIdx.x; c < p.channels; c += SaoCuda::kThreads) {
    sums[c] = FoldSplits(run, sample, 0, c);
    sums[p.channels + c] = p.global_term ? FoldSplits(run, sample, 1 + head, c) : 0.0f;
  }
  __syncthreads();
  const auto* weight = static_cast<const float*>(p.value_weight);
  const int lane = threadIdx.x % kWarp;
  for (int64_t c = begin + threadIdx.x / kWarp; c < end; c += SaoCuda::kWarps) {
    float plain = 0;
    float weighted = 0;
    for (int64_t from = lane; from < p.channels; from += kWarp) {
      plain += weight[c * p.channels + from] * sums[from];
      weighted += weight[c * p.channels + from] * sums[p.channels + from];
    }
    plain = WarpSum(plain);
    weighted = WarpSum(weighted);
    if (lane == 0) {
      const float scale = static_cast<const float*>(p.scale)[c];
      run.slope[sample * p.channels + c] = scale * plain;
      run.offset[sample * p.channels + c] = scale * weighted + static_cast<const float*>(p.shift)[c];
    }
  }
}

// grid (heads * ceil(C / heads / kChannelsPerBlock), batch), with dynamic shared memory for 2 C floats.
template <bool kModule>
__global__ void __launch_bounds__(SaoCuda::kThreads) SaoCoefficientsKernel(SaoCuda run) {
  SACCADE_DYNAMIC_SHARED(float, sums);
  const int64_t head_channels = run.p.channels / run.p.heads;
  const int64_t blocks_per_head =
      (head_channels + SaoCuda::kChannelsPerBlock - 1) / SaoCuda::kChannelsPerBlock;
  const int64_t head = blockIdx.x / blocks_per_head;
  const int64_t within = blockIdx.x % blocks_per_head * SaoCuda::kChannelsPerBlock;
  const int64_t begin = head * head_channels + within;
  const int64_t left = head_channels - within;
  const int64_t end = begin + (left < SaoCuda::kChannelsPerBlock ? left : SaoCuda::kChannelsPerBlock);
  if (kModule) {
    ModuleCoefficients(run, blockIdx.y, head, begin, end, sums);
  } else {
    MeanCoefficients(run, blockIdx.y, begin, end);
  }
}

// What a block of SaoApplyKernel writes: a tile of positions, and channels.
struct SaoApplied {
  int64_t sample, first, channel, channels;
};

// One element of the result, of a valid position.
__device__ inline float SaoResult(const SaoCuda& run, const SaoApplied& block, int64_t c, float score,
                                  float x) {
  const float y =
      run.slope[block.sample * run.p.channels + c] * score + run.offset[block.sample * run.p.channels + c];
  return run.p.residual ? y + x : y;
}

// Channels at a time, or positions at a time, in vectors; `score_of` gives the score of a channel and
// position of the tile. Every position must be valid.
template <typename T, typename ScoreOf>
__device__ void ApplyVectors(const SaoCuda& run, const SaoApplied& block, const ScoreOf& score_of) {
  constexpr int kCount = kIn16Bytes<T>;
  const SaoProblem& p = run.p;
  const T* x = SampleOf<T>(p.q, block.sample);
  T* out = static_cast<T*>(p.out) + block.sample * p.channels * p.positions;
  const int64_t left = p.positions - block.first;
  const auto positions = static_cast<int>(left < SaoCuda::kTile ? left : SaoCuda::kTile);
  const auto channels = static_cast<int>(block.channels);
  const int along = p.channels_last ? channels / kCount : positions / kCount;
  const int others = p.channels_last ? positions : channels;
  SACCADE_UNROLL_BY(2)
  for (int i = static_cast<int>(threadIdx.x); i < along * others; i += SaoCuda::kThreads) {
    const int one = i % along * kCount, other = i / along;
    const int position = p.channels_last ? other : one;
    const int64_t c = block.channel + (p.channels_last ? one : other);
    const int64_t at = block.first + position;
    SaoVector<T> values = {};
    if (p.residual) {
      values = *reinterpret_cast<const SaoVector<T>*>(x + c * p.q.channel_stride + at * p.q.position_stride);
    }
    SACCADE_UNROLL
    for (int k = 0; k < kCount; ++k) {
      const int64_t ck = p.channels_last ? c + k : c;
      const float score = score_of(ck, p.channels_last ? position : position + k);
      FromFloat(SaoResult(run, block, ck, score, ToFloat(values.of[k])), &values.of[k]);
    }
    *reinterpret_cast<SaoVector<T>*>(out + (p.channels_last ? at * p.channels + c : c * p.positions + at)) =
        values;
  }
}

// grid (ceil(N / kTile) * ceil(C / applied), batch), over all positions: the padding is written as zero.
// Dynamic shared memory for heads * kTile floats.
template <typename T>
__global__ void __launch_bounds__(SaoCuda::kThreads) SaoApplyKernel(SaoCuda run) {
  SACCADE_DYNAMIC_SHARED(float, scores);
  const SaoProblem& p = run.p;
  const int64_t tiles = (p.positions + SaoCuda::kTile - 1) / SaoCuda::kTile;
  SaoApplied block;
  block.sample = blockIdx.y;
  block.first = blockIdx.x % tiles * SaoCuda::kTile;
  block.channel = blockIdx.x / tiles * run.applied;
  block.channels = p.channels - block.channel < run.applied ? p.channels - block.channel : run.applied;
  const DeviceBox box(p.extent, block.sample);
  const int lane = threadIdx.x % SaoCuda::kTile;
  const int group = threadIdx.x / SaoCuda::kTile;
  const int64_t position = block.first + lane;
  const int64_t number = position < p.positions ? box.NumberOf(position) : -1;
  if (run.keep_scores) {
    for (int64_t h = group; h < p.heads && number >= 0; h += SaoCuda::kGroups) {
      scores[h * SaoCuda::kTile + lane] = run.scores[(block.sample * p.heads + h) * p.positions + number];
    }
    __syncthreads();
  } else {
    TileScores<T>(run, p.q, p.query_scores, block.sample, number < 0 ? -1 : position, scores);
  }
  const auto head_channels = static_cast<uint32_t>(p.channels / p.heads);
  const auto score_of = [&](int64_t c, int at) {
    return scores[static_cast<uint32_t>(c) / head_channels * SaoCuda::kTile + at];
  };
  const int64_t along = p.channels_last ? p.q.channel_stride : p.q.position_stride;
  const int64_t across = p.channels_last ? p.q.position_stride : p.q.channel_stride;
  const int64_t size = p.channels_last ? p.channels : p.positions;
  if (box.Positions() == p.positions && along == 1 && size % kIn16Bytes<T> == 0 &&
      run.applied % kIn16Bytes<T> == 0 && SaoVectorsFit<T>(p.q.data, across, p.q.batch_stride) &&
      SaoVectorsFit<T>(p.out, 0, 0)) {
    ApplyVectors<T>(run, block, score_of);
    return;
  }
  if (position >= p.positions) return;
  const int64_t out_channel_stride = p.channels_last ? 1 : p.positions;
  T* out = static_cast<T*>(p.out) + block.sample * p.channels * p.positions +
           position * (p.channels_last ? p.channels : 1);
  const T* x = SampleOf<T>(p.q, block.sample) + position * p.q.position_stride;
  for (int64_t c = block.channel + group; c < block.channel + block.channels; c += SaoCuda::kGroups) {
    const float y =
        number < 0 ? 0 : SaoResult(run, block, c, score_of(c, lane), ToFloat(x[c * p.q.channel_stride]));
    FromFloat(y, out + c * out_channel_stride);
  }
}

// The shared memory that every device offers by default limits heads and channels.
inline bool SaoCudaFits(const SaoProblem& p) {
  constexpr int64_t kMaxSharedFloats = 40 * 1024 / 4;
  return p.heads * SaoCuda::kTile <= kMaxSharedFloats && 2 * p.channels <= kMaxSharedFloats &&
         p.batch <= 65535 && p.positions <= 0x7fffffff;
}

// Calls launch(kernel, grid.x, grid.y, threads, dynamic shared bytes, run) for each kernel in order.
template <typename T, typename Launch>
void RunSaoCuda(const SaoProblem& p, float* workspace, const Launch& launch) {
  const SaoCuda run(p, workspace);
  const auto batch = static_cast<unsigned>(p.batch);
  const auto tiles = static_cast<unsigned>((p.positions + SaoCuda::kTile - 1) / SaoCuda::kTile);
  const int64_t head_channels = p.channels / p.heads;
  const int64_t blocks_per_head =
      (head_channels + SaoCuda::kChannelsPerBlock - 1) / SaoCuda::kChannelsPerBlock;
  const size_t tile_bytes = p.heads * SaoCuda::kTile * sizeof(float);
  launch(SaoReduceKernel<T>, static_cast<unsigned>(run.splits), batch, SaoCuda::kThreads, tile_bytes, run);
  launch(run.module ? SaoCoefficientsKernel<true> : SaoCoefficientsKernel<false>,
         static_cast<unsigned>(p.heads * blocks_per_head), batch, SaoCuda::kThreads,
         2 * p.channels * sizeof(float), run);
  const auto chunks = static_cast<unsigned>((p.channels + run.applied - 1) / run.applied);
  launch(SaoApplyKernel<T>, tiles * chunks, batch, SaoCuda::kThreads, tile_bytes, run);
}

}  // namespace saccade::kernels
