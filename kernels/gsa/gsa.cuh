// Global self-attention on CUDA, compiled by nvcc and, for the emulator, by g++:
//   project   the module's 1x1 convolutions into the workspace, in float32 (device/attend.cuh)
//   context   softmax(K)^T V of each head (device/attend.cuh)
//   axis      attention along columns, with the middle batch norm, into the workspace
//   axis      attention along rows. The last axis kernel, or the only one, also adds Q context, applies the
//             last batch norm and writes the result
// No atomics. The order of every sum depends on a sample's extent and the channels alone.
#pragma once

#include "kernels/device/attend.cuh"
#include "kernels/gsa/gsa_axis.cuh"
#include "kernels/gsa/gsa_problem.h"

namespace saccade::kernels {

// The plan: the problem, and the layout of its workspace.
struct GsaCuda {
  // `workspace` has FloatsOfWorkspace() floats, which may be uninitialised; null only to measure.
  GsaCuda(const GsaProblem& problem, float* workspace) : p(problem), q(p.q), k(p.k), v(p.v), base(workspace) {
    if (IsModule(p)) {
      q = Projected(p.key_channels);
      if (p.content != GsaContent::kNone) k = Projected(p.key_channels);
      v = Projected(p.value_channels);
    }
    // Columns are adjacent while values are read along them, then rows are.
    if (AxesOf(p) == 2)
      between = MapAt(Take(p.batch * p.value_channels * PositionsOf(p.extent)), p.value_channels, true);
    if (p.content == GsaContent::kGlobal) {
      context = Take(p.batch * p.key_channels * (p.value_channels / p.heads));
      attend = Take(AttendWorkspaceFloats(Context()));
    }
  }

  int64_t FloatsOfWorkspace() const { return floats; }

  // The type of q, k and v; projections are float32.
  Dtype MapType() const { return IsModule(p) ? Dtype::kFloat32 : p.dtype; }

  // A 1x1 convolution of x.
  AttendProblem Projection(const void* weight, const void* bias, const FeatureMap& to,
                           int64_t channels) const {
    AttendProblem a;
    a.batch = p.batch;
    a.depth = p.channels;
    a.queries = p.extent;
    a.keys = RowExtent(channels);
    a.q = RowsOf(p.x, p.dtype, 0);
    a.k = MatrixRows(static_cast<const float*>(weight), p.channels, 1);
    a.softmax = false;
    a.key_bias = static_cast<const float*>(bias);
    a.out = RowsOf(Writable(to), Dtype::kFloat32, 0);
    return a;
  }

  // softmax(K)^T V: the key channels are the queries, and K's values are their logits.
  AttendProblem Context() const {
    AttendProblem a;
    a.batch = p.batch;
    a.heads = p.heads;
    a.value_channels = p.value_channels / p.heads;
    a.queries = RowExtent(p.key_channels / p.heads);
    a.keys = p.extent;
    a.logits = RowsOf(k, MapType(), p.key_channels / p.heads);
    for (int d = 0; d < kMaxSpatialDims; ++d) {
      a.logits_key_stride[d] = k.spatial_stride[d];
      a.logits.row_stride[d] = 0;
    }
    a.logits.row_stride[kMaxSpatialDims - 1] = k.channel_stride;
    a.v = RowsOf(v, MapType(), a.value_channels);
    const int64_t size = p.key_channels / p.heads * a.value_channels;
    a.out = MatrixRows(context, a.value_channels, 1, size, p.heads * size);
    return a;
  }

  // `last`: the axis writes the result.
  GsaAxis Axis(int axis, const FeatureMap& values, bool last) const {
    GsaAxis run;
    run.batch = p.batch;
    run.heads = p.heads;
    run.key_channels = p.key_channels / p.heads;
    run.value_channels = p.value_channels / p.heads;
    run.extent = p.extent;
    run.axis = axis;
    run.q = q;
    run.k = k;
    run.values = values;
    run.out = last ? p.out : Writable(between);
    run.softmax = p.content == GsaContent::kAxial;
    const void* embedding = axis < 0 ? nullptr : p.embedding[axis];
    run.reach = embedding == nullptr ? 0 : p.reach[axis];
    run.embedding = embedding == nullptr
                        ? nullptr
                        : static_cast<const float*>(embedding) + (run.reach - 1) * run.key_channels;
    run.context = last ? context : nullptr;
    run.scale = static_cast<const float*>(last ? p.scale : p.middle_scale);
    run.shift = static_cast<const float*>(last ? p.shift : p.middle_shift);
    run.clear = last;
    return run;
  }

  GsaProblem p;
  FeatureMap q, k, v;
  FeatureMap between;
  float* context = nullptr;
  float* attend = nullptr;

 private:
  static OutputMap Writable(const FeatureMap& map) {
    OutputMap out;
    out.data = const_cast<void*>(map.data);
    out.batch_stride = map.batch_stride;
    out.channel_stride = map.channel_stride;
    for (int d = 0; d < kMaxSpatialDims; ++d) out.spatial_stride[d] = map.spatial_stride[d];
    return out;
  }
  float* Take(int64_t count) {
    float* at = base == nullptr ? nullptr : base + floats;
    floats += (count + 31) / 32 * 32;
    return at;
  }
  FeatureMap MapAt(float* data, int64_t channels, bool rows_adjacent) const {
    const int64_t positions = PositionsOf(p.extent);
    FeatureMap map;
    map.data = data;
    map.batch_stride = channels * positions;
    map.channel_stride = positions;
    map.spatial_stride[1] = rows_adjacent ? 1 : p.extent.size[2];
    map.spatial_stride[2] = rows_adjacent ? p.extent.size[1] : 1;
    return map;
  }
  FeatureMap Projected(int64_t channels) {
    return MapAt(Take(p.batch * channels * PositionsOf(p.extent)), channels, false);
  }

  float* base;
  int64_t floats = 0;
};

// Returns true if the grids can hold the problem.
inline bool GsaCudaFits(const GsaProblem& p) {
  const GsaCuda run(p, nullptr);
  for (const int axis : {0, 1}) {
    if (run.Axis(axis, run.v, true).Blocks() > kMaxBlocks) return false;
  }
  if (IsModule(p) && (!AttendFits(run.Projection(nullptr, nullptr, run.v, p.value_channels)) ||
                      !AttendFits(run.Projection(nullptr, nullptr, run.q, p.key_channels)))) {
    return false;
  }
  return p.content != GsaContent::kGlobal || AttendFits(run.Context());
}

// Calls `launch` (see launch.cuh) for each kernel in order. T is the maps' type.
template <typename T, typename In, typename Launch>
void RunGsaAttention(const GsaCuda& run, const Launch& launch) {
  const GsaProblem& p = run.p;
  const auto start = [&](void (*kernel)(GsaAxis), const GsaAxis& axis) {
    launch(kernel, axis.Blocks(), kBlockThreads, axis);
  };
  if (AxesOf(p) == 2) {
    start(GsaAxisKernel<In, In, float>, run.Axis(0, run.v, false));
    start(GsaAxisKernel<In, float, T>, run.Axis(1, run.between, true));
  } else {
    const int axis = p.embedding[0] != nullptr ? 0 : p.embedding[1] != nullptr ? 1 : -1;
    start(GsaAxisKernel<In, In, T>, run.Axis(axis, run.v, true));
  }
}

template <typename T, typename Launch>
void RunGsaCuda(const GsaProblem& p, float* workspace, const Launch& launch) {
  const GsaCuda run(p, workspace);
  if (IsModule(p)) {
    RunProduct<T>(run.Projection(p.query_weight, p.query_bias, run.q, p.key_channels), launch);
    if (p.content != GsaContent::kNone) {
      RunProduct<T>(run.Projection(p.key_weight, nullptr, run.k, p.key_channels), launch);
    }
    RunProduct<T>(run.Projection(p.value_weight, p.value_bias, run.v, p.value_channels), launch);
  }
  if (p.content == GsaContent::kGlobal) RunAttend<T>(run.Context(), run.attend, launch);
  if (IsModule(p)) {
    RunGsaAttention<T, float>(run, launch);
  } else {
    RunGsaAttention<T, T>(run, launch);
  }
}

}  // namespace saccade::kernels
