// The second of the tiled kernels of efficient attention (efficient_attention_tiled_run.cuh).
#pragma once

#include <cmath>

#include "kernels/efficient_attention/efficient_attention_tiled_run.cuh"

namespace saccade::kernels {

inline constexpr int kFoldThreads = 1024;
inline constexpr int kFoldWarps = kFoldThreads / kWarp;

// Weighs the ranges of one key channel: weights[s] becomes the factor of range s, and *total the weighted sum
// of the ranges' sums of coefficients. Ends with a barrier.
__device__ inline void EaWeighRanges(bool softmax, const float* tops, int64_t step, int splits,
                                     float* weights, float* total) {
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < splits) weights[thread] = softmax ? tops[thread * step] : 0.0f;
  __syncthreads();
  if (thread < kWarp) {
    float top = -INFINITY;
    for (int s = thread; s < splits; s += kWarp) top = fmaxf(top, weights[s]);
    for (int lanes = 1; lanes < kWarp; lanes *= 2) top = fmaxf(top, __shfl_xor_sync(kWholeWarp, top, lanes));
    float sum = 0;
    for (int s = thread; s < splits; s += kWarp) {
      weights[s] = exp2f(weights[s] - top);
      sum += weights[s] * tops[s * step + kEaKeys];
    }
    sum = WarpSum(sum);
    if (thread == 0) *total = sum;
  }
  __syncthreads();
}

// The dot product of two rows, by the whole warp.
__device__ inline float WarpDot(const float* left, const float* right, int count) {
  float sum = 0;
  for (int i = static_cast<int>(threadIdx.x) % kWarp; i < count; i += kWarp) sum += left[i] * right[i];
  return WarpSum(sum);
}

// Launched with one block for each key channel and sample.
template <typename T>
__global__ void __launch_bounds__(kFoldThreads, 1) EaFoldKernel(EaTiled run) {
  SACCADE_SHARED(float, weights, EaTiled::kBlocks);
  SACCADE_SHARED(float, total, 1);
  SACCADE_SHARED(float, rows, kFoldThreads * 4);
  SACCADE_SHARED(float, context, EaTiled::kMaxHeadValues);
  const EfficientAttentionProblem& p = run.p;
  const int thread = static_cast<int>(threadIdx.x);
  const auto width = static_cast<int>(run.width);
  const auto keys = static_cast<int>(p.key_channels);
  const int key = static_cast<int>(blockIdx.x) % keys;
  const int sample = static_cast<int>(blockIdx.x) / keys;
  const auto channels = static_cast<int>(p.channels);
  const auto out_width = static_cast<int>(run.out_width);
  T* const folded = static_cast<T*>(run.folded) + static_cast<int64_t>(sample) * out_width * kEaKeyRow<T>;
  // The zeros around both matrices are shared out among the blocks. A wide map's queries are ready.
  const int stride = width + kEaChunk<T>;
  for (int row = key; row < kEaKeys && sample == 0 && !run.wide; row += keys) {
    for (int c = thread; c < stride; c += kFoldThreads) {
      const bool there = row == key && c < channels;
      FromFloat(there ? static_cast<const float*>(p.query_weight)[key * channels + c] : 0.0f,
                static_cast<T*>(run.query_weight) + row * stride + c);
    }
  }
  for (int column = key + keys; column < kEaKeyRow<T>; column += keys) {
    for (int c = thread; c < out_width; c += kFoldThreads)
      FromFloat(0.0f, folded + c * kEaKeyRow<T> + column);
  }

  // The merged row: `width` sums, four for each thread, and groups of threads take turns with the ranges.
  const int positions = DeviceBox(p.extent, sample).Positions();
  const auto splits = static_cast<int>(run.Splits(EaTiled::Tiles(positions)));
  const int64_t step = run.PartialFloats();
  const float* const slots = run.partial + sample * run.slots * step;
  const float* const tops = slots + kEaKeys * width + key;
  EaWeighRanges(p.softmax, tops, step, splits, weights, total);
  // A sample without positions has no results, but its workspace should not depend on what was there before.
  const float norm = p.softmax ? *total : static_cast<float>(positions);
  const float factor = splits > 0 ? 1 / norm : 0.0f;
  const float key_sum = *total * factor;
  const int across = width / 4;
  const int groups = kFoldThreads / across;
  const float* const from = slots + key * width + thread % across * 4;
  Float4 sums = {};
  SACCADE_UNROLL_BY(8)
  for (int s = thread / across; s < splits && thread < groups * across; s += groups) {
    const Float4 four = *reinterpret_cast<const Float4*>(from + s * step);
    for (int i = 0; i < 4; ++i) sums.at[i] += weights[s] * four.at[i];
  }
  for (int i = 0; i < 4; ++i) rows[thread * 4 + i] = sums.at[i];
  __syncthreads();
  for (int c = thread; c < width; c += kFoldThreads) {
    float merged = 0;
    for (int g = 0; g < groups; ++g) merged += rows[g * width + c];
    // No other thread reads the element that is replaced.
    rows[c] = merged * factor;
  }
  __syncthreads();

  const auto head_values = static_cast<int>(p.value_channels / p.heads);
  const int first_value = key / static_cast<int>(p.key_channels / p.heads) * head_values;
  const int warp = thread / kWarp;
  const auto* const value_bias = static_cast<const float*>(p.value_bias);
  for (int v = warp; v < head_values; v += kFoldWarps) {
    const auto* const row = static_cast<const float*>(p.value_weight) + (first_value + v) * p.channels;
    float sum = WarpDot(rows, row, channels);
    if (value_bias != nullptr) sum += (p.softmax ? 1.0f : key_sum) * value_bias[first_value + v];
    if (thread % kWarp == 0) context[v] = sum;
  }
  __syncthreads();
  for (int c = warp; c < out_width; c += kFoldWarps) {
    float sum = 0;
    if (c < p.out_channels && p.out_weight != nullptr) {
      sum = WarpDot(context, static_cast<const float*>(p.out_weight) + c * p.value_channels + first_value,
                    head_values);
    } else if (c < p.out_channels && c >= first_value && c < first_value + head_values) {
      // Without a projection, a head has its own channels of the result.
      sum = context[c - first_value];
    }
    if (thread % kWarp == 0) FromFloat(sum, folded + c * kEaKeyRow<T> + key);
  }
}

}  // namespace saccade::kernels
