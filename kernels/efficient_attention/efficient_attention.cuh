// Efficient attention on CUDA: a plan of the attention core (device/attend.cuh), compiled by nvcc and, for
// the emulator, by g++. The module never stores q, k or v:
//   1. S = softmax_n(Wk x) x^T (the keys' bias cancels), or for scaling (1/n) (Wk x + bk) x^T and r = (1/n)
//      sum_n (Wk x + bk): attention of dk queries, the rows of Wk, to all positions, which are split
//   2. C_h = S_h Wv_h^T + r bv_h^T, where r is 1 for softmax: one small matrix per sample and head
//   3. M = C_h Wo_h^T, which replaces an output projection of every position
//   4. y = M^T softmax(Wq x + bq) + bo (+ x): attention of all positions to dk keys, the rows of Wq, whose
//      values are the rows of M, with a softmax per head; the heads' results are added
// Without an output projection, step 4 has separate heads, whose values are C_h. The bare operator runs steps
// 1 and 4, with k and q as logits. Kernels of their own (efficient_attention_tiled.cuh) compute the module
// for most maps of up to 2048 channels and 64 key channels.
#pragma once

#include "kernels/device/attend.cuh"
#include "kernels/efficient_attention/efficient_attention_problem.h"

namespace saccade::kernels {

// The plan: the problem's sizes, its workspace and the core's problems.
struct EaCuda {
  // `workspace` has FloatsOfWorkspace() floats, which may be uninitialised; null only to measure.
  EaCuda(const EfficientAttentionProblem& problem, float* workspace) : p(problem) {
    head_keys = p.key_channels / p.heads;
    head_values = p.value_channels / p.heads;
    float* next = workspace;
    const auto take = [&](int64_t floats) {
      float* const taken = next;
      if (workspace != nullptr) next += floats;
      fixed_floats += floats;
      return taken;
    };
    gathered = take(p.batch * p.key_channels * (IsModule(p) ? p.channels : head_values));
    key_sums = take(IsModule(p) ? p.batch * p.key_channels : 0);
    context = take(IsModule(p) ? p.batch * p.key_channels * head_values : 0);
    folded = take(p.out_weight != nullptr ? p.batch * p.key_channels * p.out_channels : 0);
    attend = next;
  }

  int64_t FloatsOfWorkspace() const {
    const int64_t gather = AttendWorkspaceFloats(Gather());
    const int64_t apply = AttendWorkspaceFloats(Apply());
    return fixed_floats + (gather > apply ? gather : apply);
  }

  // Step 1.
  AttendProblem Gather() const {
    AttendProblem a;
    a.batch = p.batch;
    a.keys = p.extent;
    a.softmax = p.softmax;
    a.mean = !p.softmax;
    if (IsModule(p)) {
      a.depth = a.value_channels = p.channels;
      a.queries = RowExtent(p.key_channels);
      a.q = MatrixRows(static_cast<const float*>(p.key_weight), p.channels, 1);
      a.k = a.v = RowsOf(p.x, p.dtype, 0);
      if (!p.softmax) {
        a.query_bias = static_cast<const float*>(p.key_bias);
        a.row_sums = key_sums;
      }
    } else {
      a.heads = p.heads;
      a.value_channels = head_values;
      a.queries = RowExtent(head_keys);
      a.logits = RowsOf(p.k, p.dtype, head_keys);
      for (int d = 0; d < kMaxSpatialDims; ++d) {
        a.logits_key_stride[d] = a.logits.row_stride[d];
        a.logits.row_stride[d] = 0;
      }
      a.logits.row_stride[kMaxSpatialDims - 1] = p.k.channel_stride;
      a.v = RowsOf(p.v, p.dtype, head_values);
    }
    a.out = MatrixRows(gathered, a.value_channels, 1, head_keys * a.value_channels,
                       p.key_channels * a.value_channels);
    return a;
  }

  // Step 4.
  AttendProblem Apply() const {
    AttendProblem a;
    const bool projected = p.out_weight != nullptr;
    a.batch = p.batch;
    a.heads = projected ? 1 : p.heads;
    a.softmax = p.softmax;
    a.queries = p.extent;
    a.keys = RowExtent(projected ? p.key_channels : head_keys);
    a.value_channels = projected ? p.out_channels : head_values;
    const float* values = projected ? folded : IsModule(p) ? context : gathered;
    a.v = MatrixRows(values, a.value_channels, 1, head_keys * a.value_channels,
                     p.key_channels * a.value_channels);
    a.out = RowsOf(p.out, p.dtype, a.value_channels);
    if (!IsModule(p)) {
      a.logits = RowsOf(p.q, p.dtype, head_keys);
      a.logits_key_stride[kMaxSpatialDims - 1] = p.q.channel_stride;
      return a;
    }
    a.depth = p.channels;
    a.q = RowsOf(p.x, p.dtype, 0);
    a.k = MatrixRows(static_cast<const float*>(p.query_weight), p.channels, 1, head_keys * p.channels);
    a.key_bias = static_cast<const float*>(p.query_bias);
    a.key_group = projected && p.heads > 1 ? head_keys : 0;
    a.channel_shift = projected ? static_cast<const float*>(p.out_bias) : nullptr;
    if (p.residual) a.residual = RowsOf(p.x, p.dtype, a.value_channels);
    return a;
  }

  EfficientAttentionProblem p;
  int64_t head_keys, head_values;
  int64_t fixed_floats = 0;
  float* gathered;  // [B, dk, C], or [B, dk, dv / heads] for the bare operator
  float* key_sums;  // [B, dk], scaling only
  float* context;   // [B, dk, dv / heads]
  float* folded;    // [B, dk, C_out]
  float* attend;    // the core's own workspace
};

// Step 2, with one warp per element of [B, dk, dv / heads]. Sums and weights are of type A.
template <typename A>
__global__ void __launch_bounds__(kBlockThreads) EaContextKernel(EaCuda run) {
  const EfficientAttentionProblem& p = run.p;
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kBlockWarps + threadIdx.x / kWarp;
  if (index >= p.batch * p.key_channels * run.head_values) return;
  const int64_t row = index / run.head_values;
  const int64_t value = row % p.key_channels / run.head_keys * run.head_values + index % run.head_values;
  const A* left = run.gathered + row * p.channels;
  const A* right = static_cast<const A*>(p.value_weight) + value * p.channels;
  A sum = 0;
  for (int64_t c = threadIdx.x % kWarp; c < p.channels; c += kWarp) sum += left[c] * right[c];
  sum = WarpSum(sum);
  if (p.value_bias != nullptr) {
    sum += (p.softmax ? A(1) : run.key_sums[row]) * static_cast<const A*>(p.value_bias)[value];
  }
  if (threadIdx.x % kWarp == 0) run.context[index] = sum;
}

// Step 3, with one thread per element of [B, dk, C_out].
template <typename A>
__global__ void __launch_bounds__(kBlockThreads) EaOutputKernel(EaCuda run) {
  const EfficientAttentionProblem& p = run.p;
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x;
  if (index >= p.batch * p.key_channels * p.out_channels) return;
  const int64_t channel = index % p.out_channels;
  const int64_t row = index / p.out_channels;
  const int64_t head = row % p.key_channels / run.head_keys;
  const A* left = run.context + row * run.head_values;
  const A* right = static_cast<const A*>(p.out_weight) + channel * p.value_channels + head * run.head_values;
  A sum = 0;
  for (int64_t j = 0; j < run.head_values; ++j) sum += left[j] * right[j];
  run.folded[index] = sum;
}

inline bool EaCudaFits(const EfficientAttentionProblem& p) {
  const EaCuda run(p, nullptr);
  const int64_t widest = p.out_channels > run.head_values ? p.out_channels : run.head_values;
  return AttendFits(run.Gather()) && AttendFits(run.Apply()) &&
         p.batch * p.key_channels * widest <= kMaxBlocks;
}

template <typename T, typename Launch>
void RunEaCuda(const EfficientAttentionProblem& p, float* workspace, const Launch& launch) {
  const EaCuda run(p, workspace);
  RunAttend<T>(run.Gather(), run.attend, launch);
  if (IsModule(p)) {
    launch(EaContextKernel<float>, Blocks(p.batch * p.key_channels * run.head_values, kBlockWarps),
           kBlockThreads, run);
  }
  if (p.out_weight != nullptr) {
    launch(EaOutputKernel<float>, Blocks(p.batch * p.key_channels * p.out_channels, kBlockThreads),
           kBlockThreads, run);
  }
  RunAttend<T>(run.Apply(), run.attend, launch);
}

}  // namespace saccade::kernels
