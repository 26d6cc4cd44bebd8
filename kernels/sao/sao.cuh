// Siamese attention on CUDA: three kernels on raw pointers, compiled by nvcc and, for the emulator, by g++.
//   reduce        blocks x samples: scores w^T k, and each block's sums of v and of v times the scores
//   coefficients  adds the blocks' sums in their order; computes a slope and an offset per channel
//   apply         out = slope * score + offset (+ x)
// Sums are float32. No atomics: the order of every sum depends on positions and channels alone. Kernel
// boundaries replace grid-wide barriers, so that the kernels work in graphs and with any launch.
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

  // `workspace` has FloatsOfWorkspace() floats, which may be uninitialised; null only to measure.
  SaoCuda(const SaoProblem& problem, float* workspace) : p(problem) {
    module = p.value_weight != nullptr;
    keep_scores = p.global_term && SameMap(p.q, p.k) && p.query_scores == p.key_scores;
    splits = Splits(p.positions);
    moment_rows = !p.global_term ? 1 : module ? 1 + static_cast<int>(p.heads) : 2;
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

// grid (splits, batch), with dynamic shared memory for heads * kTile floats if the global term is on.
template <typename T>
__global__ void __launch_bounds__(SaoCuda::kThreads) SaoReduceKernel(SaoCuda run) {
  SACCADE_DYNAMIC_SHARED(float, scores);
  const SaoProblem& p = run.p;
  const int64_t sample = blockIdx.y;
  const int64_t split = blockIdx.x;
  const DeviceBox box(p.extent, sample);
  const int64_t positions = box.Positions();
  const int64_t tiles = (positions + SaoCuda::kTile - 1) / SaoCuda::kTile;
  const int64_t splits = SaoCuda::Splits(positions);
  const int64_t tiles_per_split = (tiles + splits - 1) / splits;
  float* moments = run.moments + (sample * run.splits + split) * run.moment_rows * p.channels;
  // Splits without positions are cleared too, because FoldSplits adds all of them.
  for (int64_t i = threadIdx.x; i < run.moment_rows * p.channels; i += SaoCuda::kThreads) moments[i] = 0;
  __syncthreads();

  const int lane = threadIdx.x % kWarp;
  const int warp = threadIdx.x / kWarp;
  const int64_t head_channels = p.channels / p.heads;
  const T* v = SampleOf<T>(p.v, sample);
  for (int64_t tile = split * tiles_per_split; tile < (split + 1) * tiles_per_split && tile < tiles; ++tile) {
    const int64_t first = tile * SaoCuda::kTile;
    if (p.global_term) {
      const int64_t number = first + threadIdx.x % SaoCuda::kTile;
      TileScores<T>(run, p.k, p.key_scores, sample, number < positions ? box.PositionOf(number) : -1, scores);
      if (run.keep_scores && number < positions) {
        for (int64_t h = threadIdx.x / SaoCuda::kTile; h < p.heads; h += SaoCuda::kGroups) {
          run.scores[(sample * p.heads + h) * p.positions + number] =
              scores[h * SaoCuda::kTile + threadIdx.x % SaoCuda::kTile];
        }
      }
    }
    // Each warp processes one channel at a time; each lane handles the same two positions for every channel.
    int64_t at[SaoCuda::kTile / kWarp];
    for (int i = 0; i < SaoCuda::kTile / kWarp; ++i) {
      const int64_t number = first + i * kWarp + lane;
      at[i] = number < positions ? box.PositionOf(number) : -1;
    }
    for (int64_t c = warp; c < p.channels; c += SaoCuda::kWarps) {
      float values[SaoCuda::kTile / kWarp];
      float sum = 0;
      for (int i = 0; i < SaoCuda::kTile / kWarp; ++i) {
        values[i] = at[i] < 0 ? 0 : ToFloat(v[c * p.v.channel_stride + at[i] * p.v.position_stride]);
        sum += values[i];
      }
      sum = WarpSum(sum);
      if (lane == 0) moments[c] += sum;
      for (int row = 1; row < run.moment_rows; ++row) {
        // In the module every channel needs every head's scores, because the value transform mixes channels.
        const int64_t head = run.module ? row - 1 : c / head_channels;
        float weighted = 0;
        for (int i = 0; i < SaoCuda::kTile / kWarp; ++i) {
          weighted += values[i] * scores[head * SaoCuda::kTile + i * kWarp + lane];
        }
        weighted = WarpSum(weighted);
        if (lane == 0) moments[row * p.channels + c] += weighted;
      }
    }
    __syncthreads();
  }
}

// Returns the sum over all splits of one row of moments, in order.
__device__ inline float FoldSplits(const SaoCuda& run, int64_t sample, int64_t row, int64_t channel) {
  float sum = 0;
  const float* part = run.moments + (sample * run.splits * run.moment_rows + row) * run.p.channels + channel;
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

// grid (ceil(N / kTile), batch), over all positions: the padding is written as zero. Dynamic shared memory
// for heads * kTile floats.
template <typename T>
__global__ void __launch_bounds__(SaoCuda::kThreads) SaoApplyKernel(SaoCuda run) {
  SACCADE_DYNAMIC_SHARED(float, scores);
  const SaoProblem& p = run.p;
  const int64_t sample = blockIdx.y;
  const DeviceBox box(p.extent, sample);
  const int lane = threadIdx.x % SaoCuda::kTile;
  const int group = threadIdx.x / SaoCuda::kTile;
  const int64_t position = static_cast<int64_t>(blockIdx.x) * SaoCuda::kTile + lane;
  const int64_t number = position < p.positions ? box.NumberOf(position) : -1;
  if (run.keep_scores) {
    for (int64_t h = group; h < p.heads && number >= 0; h += SaoCuda::kGroups) {
      scores[h * SaoCuda::kTile + lane] = run.scores[(sample * p.heads + h) * p.positions + number];
    }
    __syncthreads();
  } else {
    TileScores<T>(run, p.q, p.query_scores, sample, number < 0 ? -1 : position, scores);
  }
  if (position >= p.positions) return;
  const int64_t head_channels = p.channels / p.heads;
  const int64_t out_channel_stride = p.channels_last ? 1 : p.positions;
  T* out = static_cast<T*>(p.out) + sample * p.channels * p.positions +
           position * (p.channels_last ? p.channels : 1);
  const T* x = SampleOf<T>(p.q, sample) + position * p.q.position_stride;
  for (int64_t c = group; c < p.channels; c += SaoCuda::kGroups) {
    float y = 0;
    if (number >= 0) {
      y = run.slope[sample * p.channels + c] * scores[c / head_channels * SaoCuda::kTile + lane] +
          run.offset[sample * p.channels + c];
      if (p.residual) y += ToFloat(x[c * p.q.channel_stride]);
    }
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
  launch(SaoApplyKernel<T>, tiles, batch, SaoCuda::kThreads, tile_bytes, run);
}

}  // namespace saccade::kernels
