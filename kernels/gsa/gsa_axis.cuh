// The kernel of global self-attention's axial part, which also computes the final result; see gsa.cuh.
#pragma once

#include "kernels/common/device.h"
#include "kernels/common/feature_map.h"
#include "kernels/device/box.cuh"
#include "kernels/device/operand_tile.cuh"

namespace saccade::kernels {

// One axis of one call, as passed to the kernel. `axis` is -1 if there is no axis, only the content.
//
// A warp processes 32 lines, numbered through all heads because heads share the embedding, so that
// neighbouring lanes read neighbouring columns. A thread computes kQueries positions of its line for
// kChannels value channels. Scores are recomputed for every kChannels channels of a head: with eight channels
// per head they cost as many products as their use, and networks have more channels per head only where maps
// are small.
struct GsaAxis {
  static constexpr int kQueries = 2;
  static constexpr int kKeys = 8;
  static constexpr int kChannels = 8;
  static constexpr int kPositions = kBlockWarps * kQueries;  // of a line, per block

  // Number of positions along the axis, and of lines across it per head.
  __host__ __device__ int64_t Length() const { return extent.size[axis == 1 ? 2 : 1]; }
  __host__ __device__ int64_t Lines() const { return extent.size[axis == 1 ? 1 : 2]; }
  __host__ __device__ int64_t LineBlocks() const { return (heads * Lines() + kWarp - 1) / kWarp; }
  __host__ __device__ int64_t PositionBlocks() const { return (Length() + kPositions - 1) / kPositions; }
  __host__ __device__ int64_t ChannelBlocks() const { return (value_channels + kChannels - 1) / kChannels; }
  int64_t Blocks() const { return batch * LineBlocks() * PositionBlocks() * ChannelBlocks(); }

  int64_t batch, heads;
  int64_t key_channels, value_channels;  // per head
  Extent extent;
  int axis;
  FeatureMap q, k, values;
  OutputMap out;
  bool softmax;            // apply a softmax to the scores, which then include k
  const float* embedding;  // row of offset zero; rows are key_channels floats apart
  int64_t reach;
  const float* context;  // [B, heads, key_channels, value_channels], or null
  const float* scale;    // [C], like shift; or null
  const float* shift;
  bool clear;  // write zeros in the padding
};

// The sums of one thread; for a softmax also the maximum that they are relative to, and the denominator.
struct GsaSums {
  float value[GsaAxis::kQueries][GsaAxis::kChannels] = {};
  float max[GsaAxis::kQueries];
  float total[GsaAxis::kQueries] = {};
};

// LineOffset returns the offset of the first position of a thread's line; StepOf the distance between
// positions.
template <typename Map>
__device__ int64_t LineOffset(const GsaAxis& run, const Map& map, int64_t sample, int64_t channel,
                              int64_t line) {
  return sample * map.batch_stride + channel * map.channel_stride +
         line * map.spatial_stride[run.axis == 1 ? 1 : 2];
}
template <typename Map>
__device__ int64_t StepOf(const GsaAxis& run, const Map& map) {
  return map.spatial_stride[run.axis == 1 ? 2 : 1];
}

__device__ inline int64_t Clamped(int64_t value, int64_t low, int64_t high) {
  return value < low ? low : value > high ? high : value;
}

// Adds to scores[n][t] the scores of positions first + n with key + t. Scores of positions past the end are
// unspecified.
template <typename In>
__device__ void GsaScores(const GsaAxis& run, int64_t sample, int64_t head, int64_t line, int64_t length,
                          int64_t first, int64_t key, float (&scores)[GsaAxis::kQueries][GsaAxis::kKeys]) {
  const int64_t channel = head * run.key_channels;
  const In* q = static_cast<const In*>(run.q.data) + LineOffset(run, run.q, sample, channel, line);
  const In* k =
      run.softmax ? static_cast<const In*>(run.k.data) + LineOffset(run, run.k, sample, channel, line) : q;
  const int64_t q_step = StepOf(run, run.q);
  const int64_t k_step = StepOf(run, run.k);
  // The embedding's row for key + t and position first + n depends on t - n alone.
  constexpr int kOffsets = GsaAxis::kQueries + GsaAxis::kKeys - 1;
  const float* embedding[kOffsets];
  SACCADE_UNROLL
  for (int j = 0; j < kOffsets; ++j) {
    const int64_t offset = key - first + j - (GsaAxis::kQueries - 1);
    embedding[j] = run.embedding + Clamped(offset, 1 - run.reach, run.reach - 1) * run.key_channels;
  }
  for (int64_t c = 0; c < run.key_channels; ++c) {
    float query[GsaAxis::kQueries];
    SACCADE_UNROLL
    for (int n = 0; n < GsaAxis::kQueries; ++n) {
      query[n] = ToFloat(q[c * run.q.channel_stride + Clamped(first + n, 0, length - 1) * q_step]);
    }
    float relative[kOffsets];
    SACCADE_UNROLL
    for (int j = 0; j < kOffsets; ++j) relative[j] = embedding[j][c];
    SACCADE_UNROLL
    for (int t = 0; t < GsaAxis::kKeys; ++t) {
      float own = 0;
      if (run.softmax) own = ToFloat(k[c * run.k.channel_stride + Clamped(key + t, 0, length - 1) * k_step]);
      SACCADE_UNROLL
      for (int n = 0; n < GsaAxis::kQueries; ++n) {
        scores[n][t] += query[n] * (relative[t - n + GsaAxis::kQueries - 1] + own);
      }
    }
  }
}

// Turns the scores of `count` keys into coefficients relative to the new maximum, and rescales the earlier
// sums.
__device__ inline void GsaOnlineSoftmax(int64_t count, float (&scores)[GsaAxis::kQueries][GsaAxis::kKeys],
                                        GsaSums& sums) {
  SACCADE_UNROLL
  for (int n = 0; n < GsaAxis::kQueries; ++n) {
    float max = sums.max[n];
    SACCADE_UNROLL
    for (int t = 0; t < GsaAxis::kKeys; ++t) max = t < count && scores[n][t] > max ? scores[n][t] : max;
    const float factor = expf(sums.max[n] - max);
    sums.max[n] = max;
    sums.total[n] *= factor;
    SACCADE_UNROLL
    for (int v = 0; v < GsaAxis::kChannels; ++v) sums.value[n][v] *= factor;
    SACCADE_UNROLL
    for (int t = 0; t < GsaAxis::kKeys; ++t) {
      scores[n][t] = expf(scores[n][t] - max);
      if (t < count) sums.total[n] += scores[n][t];
    }
  }
}

// Computes the thread's sums over all keys of its line, for channels [channel, channel + kChannels) of the
// head.
template <typename In, typename Values>
__device__ void GsaSumKeys(const GsaAxis& run, int64_t sample, int64_t head, int64_t line, int64_t length,
                           int64_t first, int64_t channel, GsaSums& sums) {
  const Values* values = static_cast<const Values*>(run.values.data) +
                         LineOffset(run, run.values, sample, head * run.value_channels, line);
  const int64_t step = StepOf(run, run.values);
  SACCADE_UNROLL
  for (int n = 0; n < GsaAxis::kQueries; ++n) sums.max[n] = -3.402823466e38f;
  for (int64_t key = 0; key < length; key += GsaAxis::kKeys) {
    const int64_t count = length - key < GsaAxis::kKeys ? length - key : GsaAxis::kKeys;
    float scores[GsaAxis::kQueries][GsaAxis::kKeys] = {};
    GsaScores<In>(run, sample, head, line, length, first, key, scores);
    if (run.softmax) GsaOnlineSoftmax(count, scores, sums);
    SACCADE_UNROLL
    for (int v = 0; v < GsaAxis::kChannels; ++v) {
      const int64_t c = channel + v < run.value_channels ? channel + v : run.value_channels - 1;
      const Values* from = values + c * run.values.channel_stride + key * step;
      // Each part is summed separately, because one long sum would have a larger rounding error.
      float part[GsaAxis::kQueries] = {};
      SACCADE_UNROLL
      for (int t = 0; t < GsaAxis::kKeys; ++t) {
        if (t >= count) continue;
        const float value = ToFloat(from[t * step]);
        SACCADE_UNROLL
        for (int n = 0; n < GsaAxis::kQueries; ++n) part[n] += scores[n][t] * value;
      }
      SACCADE_UNROLL
      for (int n = 0; n < GsaAxis::kQueries; ++n) sums.value[n][v] += part[n];
    }
  }
  if (!run.softmax) return;
  SACCADE_UNROLL
  for (int n = 0; n < GsaAxis::kQueries; ++n) {
    SACCADE_UNROLL
    for (int v = 0; v < GsaAxis::kChannels; ++v) sums.value[n][v] /= sums.total[n];
  }
}

// Returns the contribution of global content to one result.
template <typename In>
__device__ float GsaContentOf(const GsaAxis& run, int64_t sample, int64_t head, const In* q,
                              int64_t channel) {
  const float* context =
      run.context + (sample * run.heads + head) * run.key_channels * run.value_channels + channel;
  float sum = 0;
  for (int64_t c = 0; c < run.key_channels; ++c) {
    sum += ToFloat(q[c * run.q.channel_stride]) * context[c * run.value_channels];
  }
  return sum;
}

template <typename In, typename Values, typename Out>
__global__ void __launch_bounds__(kBlockThreads) GsaAxisKernel(GsaAxis run) {
  int64_t block = blockIdx.x;
  const int64_t channel = block % run.ChannelBlocks() * GsaAxis::kChannels;
  block /= run.ChannelBlocks();
  const int64_t lane = block % run.LineBlocks() * kWarp + threadIdx.x % kWarp;
  block /= run.LineBlocks();
  const int64_t first =
      block % run.PositionBlocks() * GsaAxis::kPositions + threadIdx.x / kWarp * GsaAxis::kQueries;
  const int64_t sample = block / run.PositionBlocks();
  const int64_t head = lane / run.Lines();
  const int64_t line = lane % run.Lines();
  if (head >= run.heads) return;

  const DeviceBox box(run.extent, sample);
  const int64_t length = line < box.size[run.axis == 1 ? 1 : 2] ? box.size[run.axis == 1 ? 2 : 1] : 0;
  GsaSums sums;
  if (run.axis >= 0 && first < length) {
    GsaSumKeys<In, Values>(run, sample, head, line, length, first, channel, sums);
  }
  SACCADE_UNROLL
  for (int n = 0; n < GsaAxis::kQueries; ++n) {
    const int64_t position = first + n;
    if (position >= (run.clear ? run.Length() : length)) continue;
    const In* q = static_cast<const In*>(run.q.data) +
                  LineOffset(run, run.q, sample, head * run.key_channels, line) +
                  position * StepOf(run, run.q);
    SACCADE_UNROLL
    for (int v = 0; v < GsaAxis::kChannels; ++v) {
      if (channel + v >= run.value_channels) continue;
      const int64_t c = head * run.value_channels + channel + v;
      float y = 0;
      if (position < length) {
        y = sums.value[n][v];
        if (run.context != nullptr) y += GsaContentOf(run, sample, head, q, channel + v);
        if (run.scale != nullptr) y = y * run.scale[c] + run.shift[c];
      }
      FromFloat(y, static_cast<Out*>(run.out.data) + LineOffset(run, run.out, sample, c, line) +
                       position * StepOf(run, run.out));
    }
  }
}

}  // namespace saccade::kernels
