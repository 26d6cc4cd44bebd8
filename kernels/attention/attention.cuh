// Regular attention on CUDA: a plan of the attention core (device/attend.cuh), compiled by nvcc and, for the
// emulator, by g++.
//   1. the maxima of k's and v's maps for kPooled; then q, k and v: products with their weights, if any
//   2. softmax(k^T q): attention of all positions to all keys, with the operator's own epilogue;
//      without softmax: A = (1/N) v k^T, a small matrix per head, then A q, linear in the number of
//      positions
//   3. the output projection: of every position after a softmax, otherwise of A before it is applied
// Step 2 of 16-bit maps is left to LibTorch where it can do it (attention_packed.cuh).
// Intermediate maps have the maps' type; A and the projected A are float32.
#pragma once

#include "kernels/attention/attention_problem.h"
#include "kernels/device/attend.cuh"

namespace saccade::kernels {

// The plan: the problem's sizes, its workspace and the core's problem of each step.
struct AttentionCuda {
  // `workspace` has FloatsOfWorkspace() floats, which may be uninitialised, and is aligned to 8 bytes; null
  // only to measure.
  AttentionCuda(const AttentionProblem& problem, float* workspace) : p(problem) {
    head_keys = p.key_channels / p.heads;
    head_values = p.value_channels / p.heads;
    keys = p.extent;
    if (p.kind == AttentionKind::kPooled) {
      for (int64_t& size : keys.size) size = AttentionKeysAlong(p.kind, size);
      if (p.extent.valid != nullptr) {
        pooled_valid = reinterpret_cast<int64_t*>(Take(workspace, 2 * p.batch * p.extent.spatial_dims));
        keys.valid = pooled_valid;
      }
    }
    if (p.kind == AttentionKind::kPooled) {
      pooled_k = MapInWorkspace(keys, p.k.channels, workspace);
      pooled_v = MapInWorkspace(keys, p.v.channels, workspace);
    }
    transformed_q = Transformed(p.q, p.extent, p.key_channels, workspace);
    transformed_k = Transformed(p.k, keys, p.key_channels, workspace);
    transformed_v = Transformed(p.v, keys, p.value_channels, workspace);
    if (p.kind == AttentionKind::kMean) {
      mixed = Take(workspace, p.batch * p.key_channels * head_values);
      if (p.out_weight != nullptr) folded = Take(workspace, p.batch * p.key_channels * p.out_channels);
    } else if (p.out_weight != nullptr) {
      attended = MapInWorkspace(p.extent, p.value_channels, workspace);
    }
    attend = workspace == nullptr ? nullptr : workspace + floats;
  }

  int64_t FloatsOfWorkspace() const {
    if (p.kind != AttentionKind::kMean) return floats + AttendWorkspaceFloats(Softmax());
    const int64_t mix = AttendWorkspaceFloats(Mix());
    const int64_t apply = AttendWorkspaceFloats(Apply());
    return floats + (mix > apply ? mix : apply);
  }

  Rows Q() const { return Input(p.q, RowsOf(p.q.map, p.dtype, 0), transformed_q); }
  Rows K() const { return Input(p.k, KeyMap(p.k, pooled_k), transformed_k); }
  Rows V() const { return Input(p.v, KeyMap(p.v, pooled_v), transformed_v); }

  // What keys or values are made of: the input's map, or its maxima.
  Rows KeyMap(const AttentionInput& input, const OutputRows& pooled) const {
    return p.kind == AttentionKind::kPooled ? Readable(pooled) : RowsOf(input.map, p.dtype, 0);
  }

  // weight * map + bias, into the workspace.
  AttendProblem Transform(const AttentionInput& input, const Rows& map, const Extent& extent,
                          const OutputRows& out, int64_t channels) const {
    AttendProblem a;
    a.batch = p.batch;
    a.depth = input.channels;
    a.queries = extent;
    a.keys = RowExtent(channels);
    a.q = map;
    a.k = MatrixRows(static_cast<const float*>(input.weight), input.channels, 1);
    a.key_bias = static_cast<const float*>(input.bias);
    a.out = out;
    a.clear = false;
    return a;
  }

  AttendProblem Softmax() const {
    AttendProblem a = Heads(p.extent, keys);
    a.depth = head_keys;
    a.value_channels = head_values;
    a.scale = static_cast<float>(p.logit_scale);
    a.q = OfHead(Q(), head_keys);
    a.k = OfHead(K(), head_keys);
    a.v = OfHead(V(), head_values);
    if (p.out_weight == nullptr) {
      Finish(a, head_values);
    } else {
      a.out = OfHead(attended, head_values);
      a.clear = false;
    }
    return a;
  }

  // The output projection of every position.
  AttendProblem Project() const {
    AttendProblem a;
    a.batch = p.batch;
    a.depth = p.value_channels;
    a.queries = p.extent;
    a.keys = RowExtent(p.out_channels);
    a.q = Readable(attended);
    a.k = MatrixRows(static_cast<const float*>(p.out_weight), p.value_channels, 1);
    Finish(a, p.out_channels);
    return a;
  }

  // A^T = (1/N) k v^T, per head.
  AttendProblem Mix() const {
    AttendProblem a = Heads(RowExtent(head_keys), p.extent);
    a.softmax = false;
    a.mean = true;
    a.scale = static_cast<float>(p.logit_scale);
    a.value_channels = head_values;
    a.logits = OfHead(K(), head_keys);
    for (int d = 0; d < kMaxSpatialDims; ++d) {
      a.logits_key_stride[d] = a.logits.row_stride[d];
      a.logits.row_stride[d] = 0;
    }
    a.logits.row_stride[kMaxSpatialDims - 1] = a.logits.channel_stride;
    a.v = OfHead(V(), head_values);
    a.out = MatrixRows(mixed, head_values, 1, head_keys * head_values, p.key_channels * head_values);
    return a;
  }

  // A^T times the output projection.
  AttendProblem Fold() const {
    AttendProblem a = Heads(RowExtent(head_keys), RowExtent(p.out_channels));
    a.depth = head_values;
    a.q = MatrixRows(static_cast<const float*>(mixed), head_values, 1, head_keys * head_values,
                     p.key_channels * head_values);
    a.k = MatrixRows(static_cast<const float*>(p.out_weight), p.value_channels, 1, head_values);
    a.out =
        MatrixRows(folded, p.out_channels, 1, head_keys * p.out_channels, p.key_channels * p.out_channels);
    return a;
  }

  // A q. After folding, the result is one sum over all heads.
  AttendProblem Apply() const {
    const bool projected = p.out_weight != nullptr;
    AttendProblem a = Heads(p.extent, RowExtent(projected ? p.key_channels : head_keys));
    if (projected) a.heads = 1;
    a.softmax = false;
    a.value_channels = projected ? p.out_channels : head_values;
    a.logits = OfHead(Q(), head_keys);
    a.logits_key_stride[kMaxSpatialDims - 1] = a.logits.channel_stride;
    a.v = MatrixRows(static_cast<const float*>(projected ? folded : mixed), a.value_channels, 1,
                     head_keys * a.value_channels, p.key_channels * a.value_channels);
    Finish(a, a.value_channels);
    return a;
  }

  AttentionProblem p;
  int64_t head_keys, head_values;
  Extent keys;
  OutputRows transformed_q, transformed_k, transformed_v;  // used if the input has a weight
  OutputRows pooled_k, pooled_v;
  OutputRows attended;
  int64_t* pooled_valid = nullptr;  // [B, spatial dims]
  float* mixed = nullptr;           // [B, dk, dv / heads]
  float* folded = nullptr;          // [B, dk, C_out]
  float* attend;                    // the core's own workspace
  int64_t floats = 0;

 private:
  float* Take(float* workspace, int64_t count) {
    float* const taken = workspace == nullptr ? nullptr : workspace + floats;
    floats += (count + 1) / 2 * 2;
    return taken;
  }
  // Takes a map of the workspace whose channels are adjacent.
  OutputRows MapInWorkspace(const Extent& extent, int64_t channels, float* workspace) {
    OutputRows rows;
    const int64_t elements = PositionsOf(extent) * channels;
    rows.data = Take(workspace, (p.batch * elements * BytesOf(p.dtype) + 3) / 4);
    rows.dtype = p.dtype;
    rows.batch_stride = elements;
    rows.row_stride[2] = channels;
    rows.row_stride[1] = channels * extent.size[2];
    rows.row_stride[0] = channels * extent.size[2] * extent.size[1];
    return rows;
  }
  OutputRows Transformed(const AttentionInput& input, const Extent& extent, int64_t channels,
                         float* workspace) {
    return input.weight == nullptr ? OutputRows() : MapInWorkspace(extent, channels, workspace);
  }

  static Rows Input(const AttentionInput& input, const Rows& map, const OutputRows& transformed) {
    return input.weight == nullptr ? map : Readable(transformed);
  }
  AttendProblem Heads(const Extent& queries, const Extent& of_keys) const {
    AttendProblem a;
    a.batch = p.batch;
    a.heads = p.heads;
    a.queries = queries;
    a.keys = of_keys;
    return a;
  }
  template <typename AnyRows>
  static AnyRows OfHead(AnyRows rows, int64_t head_channels) {
    rows.head_stride = head_channels * rows.channel_stride;
    return rows;
  }
  void Finish(AttendProblem& a, int64_t head_channels) const {
    a.out = RowsOf(p.out, p.dtype, head_channels);
    a.channel_scale = static_cast<const float*>(p.scale);
    a.channel_shift = static_cast<const float*>(p.shift);
    if (p.residual.data != nullptr) a.residual = RowsOf(p.residual, p.dtype, head_channels);
  }
};

// Arguments of the kernel that pools one map. One thread per element of [B, pooled positions, channels];
// channels are adjacent.
struct AttentionPool {
  Rows from;
  OutputRows to;
  Extent extent, pooled;
  int64_t batch, channels, positions;  // of the pooled map
};

template <typename T>
__global__ void __launch_bounds__(kBlockThreads) AttentionPoolKernel(AttentionPool run) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x;
  if (index >= run.batch * run.positions * run.channels) return;
  const int64_t channel = index % run.channels;
  const auto position = static_cast<int>(index / run.channels % run.positions);
  const int64_t sample = index / run.channels / run.positions;
  const DeviceBox box(run.extent, sample);
  const DeviceBox pooled(run.pooled, sample);
  if (pooled.NumberOf(position) < 0) return;
  const int at[kMaxSpatialDims] = {position / pooled.full[2] / pooled.full[1],
                                   position / pooled.full[2] % pooled.full[1], position % pooled.full[2]};
  const int64_t base = MatrixOffset(run.from, sample, 0) + channel * run.from.channel_stride;
  float best = -INFINITY;
  for (int corner = 0; corner < 8; ++corner) {
    int64_t offset = base;
    bool inside = true;
    for (int d = 0; d < kMaxSpatialDims; ++d) {
      const int place = 2 * at[d] + (corner >> d & 1);
      inside = inside && place < box.size[d];
      offset += place * run.from.row_stride[d];
    }
    if (!inside) continue;
    const float value = LoadElement<T>(run.from, offset);
    // Keeps NaN, which fmaxf would drop.
    if (value > best || value != value) best = value;
  }
  int64_t to = MatrixOffset(run.to, sample, 0) + channel;
  for (int d = 0; d < kMaxSpatialDims; ++d) to += at[d] * run.to.row_stride[d];
  FromFloat(best, static_cast<T*>(run.to.data) + to);
}

// Counts the valid pooled positions, with one thread per element of [B, spatial dims].
template <typename Count>
__global__ void __launch_bounds__(kBlockThreads) AttentionPooledValidKernel(AttentionCuda run) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x;
  const Count* const valid = run.p.extent.valid;
  if (i < run.p.batch * run.p.extent.spatial_dims) run.pooled_valid[i] = (valid[i] + 1) / 2;
}

template <typename T, typename Launch>
void RunAttentionPool(const AttentionCuda& run, const Launch& launch) {
  if (run.pooled_valid != nullptr) {
    launch(AttentionPooledValidKernel<int64_t>,
           Blocks(run.p.batch * run.p.extent.spatial_dims, kBlockThreads), kBlockThreads, run);
  }
  const auto pool = [&](const Rows& from, const OutputRows& to, int64_t channels) {
    const AttentionPool one = {from,        to,       run.p.extent,         run.keys,
                               run.p.batch, channels, PositionsOf(run.keys)};
    launch(AttentionPoolKernel<T>, Blocks(one.batch * one.positions * channels, kBlockThreads), kBlockThreads,
           one);
  };
  pool(RowsOf(run.p.k.map, run.p.dtype, 0), run.pooled_k, run.p.k.channels);
  pool(RowsOf(run.p.v.map, run.p.dtype, 0), run.pooled_v, run.p.v.channels);
}

inline bool AttentionCudaFits(const AttentionProblem& p) {
  const AttentionCuda run(p, nullptr);
  const int64_t widest = p.k.channels > p.v.channels ? p.k.channels : p.v.channels;
  if (p.batch * PositionsOf(run.keys) * widest > kMaxBlocks * kBlockThreads) return false;
  if (p.kind == AttentionKind::kMean) return AttendFits(run.Mix()) && AttendFits(run.Apply());
  return AttendFits(run.Softmax()) && (p.out_weight == nullptr || AttendFits(run.Project()));
}

// Runs step 1.
template <typename T, typename Launch>
void RunAttentionInputs(const AttentionCuda& run, const Launch& launch) {
  const AttentionProblem& p = run.p;
  const auto transform = [&](const AttentionInput& input, const Rows& map, const Extent& extent,
                             const OutputRows& out, int64_t channels) {
    if (input.weight != nullptr) RunProduct<T>(run.Transform(input, map, extent, out, channels), launch);
  };
  if (p.kind == AttentionKind::kPooled) RunAttentionPool<T>(run, launch);
  transform(p.q, RowsOf(p.q.map, p.dtype, 0), p.extent, run.transformed_q, p.key_channels);
  transform(p.k, run.KeyMap(p.k, run.pooled_k), run.keys, run.transformed_k, p.key_channels);
  transform(p.v, run.KeyMap(p.v, run.pooled_v), run.keys, run.transformed_v, p.value_channels);
}

template <typename T, typename Launch>
void RunAttentionCuda(const AttentionProblem& p, float* workspace, const Launch& launch) {
  const AttentionCuda run(p, workspace);
  RunAttentionInputs<T>(run, launch);
  if (p.kind == AttentionKind::kMean) {
    RunAttend<T>(run.Mix(), run.attend, launch);
    if (p.out_weight != nullptr) RunProduct<float>(run.Fold(), launch);
    RunAttend<T>(run.Apply(), run.attend, launch);
    return;
  }
  RunAttend<T>(run.Softmax(), run.attend, launch);
  if (p.out_weight != nullptr) RunProduct<T>(run.Project(), launch);
}

}  // namespace saccade::kernels
