// Global self-attention on CUDA, compiled by nvcc and, for the emulator, by g++:
//   project   the module's 1x1 convolutions into the workspace, in the map's type and the kernels' own layout
//             (gsa_rows.cuh); for the bare operator, `pack` copies q, k and v into it
//   context   softmax(K)^T V of each head, in ranges of positions; `merge` adds them
//   axis      attention along columns, with the middle batch norm, into the workspace
//   axis      attention along rows. The last axis kernel, or the only one, also adds Q context, applies the
//             last batch norm and writes the result
// 16-bit products are computed on the tensor cores (below sm_80 in float32 arithmetic), all others in
// float32; sums are float32. No atomics. The order of every sum depends on a sample's valid extent and the
// channels alone.
#pragma once

#include "kernels/device/launch.cuh"
#include "kernels/gsa/gsa_axis.cuh"
#include "kernels/gsa/gsa_context.cuh"
#include "kernels/gsa/gsa_problem.h"
#include "kernels/gsa/gsa_project.cuh"

namespace saccade::kernels {

// The plan: the problem, and the layout of its workspace.
struct GsaCuda {
  // `workspace` has FloatsOfWorkspace() floats, which may be uninitialised; null only to measure.
  GsaCuda(const GsaProblem& problem, float* workspace) : p(problem), base(workspace) {
    q = Rows(p.key_channels);
    if (p.content != GsaContent::kNone) k = Rows(p.key_channels);
    v = Rows(p.value_channels);
    if (AxesOf(p) == 2) between = Rows(p.value_channels);
    if (p.content == GsaContent::kGlobal) {
      const int64_t keys = p.key_channels / p.heads;
      const int64_t values = p.value_channels / p.heads;
      context = Take(p.batch * p.heads * keys * values);
      partial = Take(p.batch * p.heads * GsaContextRun::Ranges(PositionsOf(p.extent)) *
                     GsaContextRun::PartialFloats(keys, values));
    }
  }

  int64_t FloatsOfWorkspace() const { return floats; }

  GsaPack Pack(const FeatureMap& map, const GsaRows& rows) const {
    GsaPack run;
    run.map = map;
    run.rows = rows;
    run.extent = p.extent;
    run.batch = p.batch;
    run.heads = p.heads;
    run.vectors = static_cast<int>(run.Vectors());
    run.position_blocks = static_cast<int>(run.PositionBlocks());
    return run;
  }

  GsaProjection Projection() const {
    const auto convolution = [this](const void* weight, const void* bias, const GsaRows& rows) {
      const int64_t outputs = weight == nullptr ? 0 : p.heads * rows.stride;
      return GsaConvolution{static_cast<const float*>(weight), static_cast<const float*>(bias), rows,
                            static_cast<int>(Blocks(outputs, GsaProjection::kOutputs))};
    };
    GsaProjection run;
    run.x = p.x;
    run.extent = p.extent;
    run.batch = p.batch;
    run.channels = static_cast<int>(p.channels);
    run.heads = static_cast<int>(p.heads);
    run.convolutions[0] = convolution(p.query_weight, p.query_bias, q);
    run.convolutions[1] = convolution(p.value_weight, p.value_bias, v);
    run.convolutions[2] = convolution(p.content == GsaContent::kNone ? nullptr : p.key_weight, nullptr, k);
    run.output_tiles = 0;
    for (const GsaConvolution& c : run.convolutions) run.output_tiles += c.tiles;
    run.position_tiles = static_cast<int>(Blocks(PositionsOf(p.extent), GsaProjection::kPositions));
    run.flat = p.x.spatial_stride[1] == p.x.spatial_stride[2] * p.extent.size[2];
    const int64_t vector = 16 / BytesOf(p.dtype);
    const bool aligned = IsAligned(p.x.data) && run.flat && p.x.batch_stride % vector == 0;
    run.position_vectors = aligned && p.x.spatial_stride[2] == 1 && PositionsOf(p.extent) % vector == 0 &&
                           p.x.channel_stride % vector == 0;
    run.channel_vectors =
        aligned && p.x.channel_stride == 1 && p.channels % vector == 0 && p.x.spatial_stride[2] % vector == 0;
    run.weight_vectors = p.channels % 4 == 0 && IsAligned(p.query_weight) && IsAligned(p.key_weight) &&
                         IsAligned(p.value_weight);
    return run;
  }

  GsaContextRun Context() const {
    const auto chunks = [](int stride) { return static_cast<int>(Blocks(stride, GsaContextRun::kChannels)); };
    GsaContextRun run;
    run.k = k;
    run.v = v;
    run.extent = p.extent;
    run.batch = p.batch;
    run.heads = p.heads;
    run.ranges = static_cast<int>(GsaContextRun::Ranges(PositionsOf(p.extent)));
    run.key_chunks = chunks(k.stride);
    run.value_chunks = chunks(v.stride);
    run.merge_blocks = static_cast<int>(Blocks(int64_t{k.channels} * v.channels, kGsaThreads));
    run.partial = partial;
    run.context = context;
    return run;
  }

  // `last`: the axis writes the result. `vectors`: value channels per block, in vectors.
  template <typename T>
  GsaAxis Axis(int axis, const GsaRows& values, bool last, int vectors) const {
    GsaAxis run;
    run.batch = p.batch;
    run.heads = static_cast<int>(p.heads);
    run.extent = p.extent;
    run.axis = axis;
    const int along = axis == 0 ? 1 : 2;
    const int across = axis == 0 ? 2 : 1;
    run.length = static_cast<int>(p.extent.size[along]);
    run.lines = static_cast<int>(p.extent.size[across]);
    run.step = axis == 0 ? static_cast<int>(p.extent.size[2]) : 1;
    run.line_step = axis == 0 ? 1 : static_cast<int>(p.extent.size[2]);
    run.q = q;
    run.k = k;
    run.values = values;
    const int64_t head_channels = p.value_channels / p.heads;
    if (last) {
      run.out = p.out.data;
      run.out_batch = p.out.batch_stride;
      run.out_head = head_channels * p.out.channel_stride;
      run.out_channel = static_cast<int>(p.out.channel_stride);
      run.out_own = static_cast<int>(p.out.spatial_stride[along]);
      run.out_line = static_cast<int>(p.out.spatial_stride[across]);
      run.out_pairs = p.out.channel_stride == 1 && head_channels % 2 == 0 && IsAligned(p.out.data);
    } else {
      run.out = between.data;
      run.out_head = int64_t{between.positions} * between.stride;
      run.out_batch = p.heads * run.out_head;
      run.out_channel = 1;
      run.out_own = run.step * between.stride;
      run.out_line = run.line_step * between.stride;
      run.out_pairs = true;
    }
    run.last = last;
    const void* embedding = axis < 0 ? nullptr : p.embedding[axis];
    run.reach = embedding == nullptr ? 0 : static_cast<int>(p.reach[axis]);
    run.embedding = embedding == nullptr
                        ? nullptr
                        : static_cast<const float*>(embedding) + (p.reach[axis] - 1) * q.channels;
    run.context = last ? context : nullptr;
    run.scale = static_cast<const float*>(last ? p.scale : p.middle_scale);
    run.shift = static_cast<const float*>(last ? p.shift : p.middle_shift);
    run.line_blocks = static_cast<int>(Blocks(run.lines, GsaAxis::kLines<T>));
    run.channel_blocks = static_cast<int>(Blocks(values.stride, vectors * kGsaVector));
    // A block that computes several tiles finds its values in the cache.
    const int64_t tiles = Blocks(run.length, GsaAxis::kOwn);
    run.own_blocks = 1;
    const int64_t wanted = Blocks(GsaAxis::kBlocksWanted, run.Blocks());
    run.own_blocks = static_cast<int>(wanted < tiles ? wanted : tiles);
    return run;
  }

  GsaProblem p;
  GsaRows q, k, v;
  GsaRows between;
  float* context = nullptr;
  float* partial = nullptr;

 private:
  static bool IsAligned(const void* data) { return reinterpret_cast<uintptr_t>(data) % 16 == 0; }
  float* Take(int64_t count) {
    float* at = base == nullptr ? nullptr : base + floats;
    floats += (count + 31) / 32 * 32;
    return at;
  }
  GsaRows Rows(int64_t channels) {
    GsaRows rows;
    rows.positions = static_cast<int>(PositionsOf(p.extent));
    rows.channels = static_cast<int>(channels / p.heads);
    rows.stride = static_cast<int>(GsaRows::StrideOf(channels / p.heads));
    const int64_t elements =
        p.batch * p.heads * PositionsOf(p.extent) * GsaRows::StrideOf(channels / p.heads);
    rows.data = Take(Blocks(elements * BytesOf(p.dtype), sizeof(float)));
    return rows;
  }

  float* base;
  int64_t floats = 0;
};

// Returns true if the grids can hold the problem, and positions and channels fit in 32 bits.
inline bool GsaCudaFits(const GsaProblem& p) {
  const int64_t matrices = p.batch * p.heads;
  const int64_t channels = p.key_channels > p.value_channels ? p.key_channels : p.value_channels;
  const int64_t max = kMaxBlocks / 8;
  if (PositionsOf(p.extent) > max || channels > max || p.channels > max || matrices > max) return false;
  const int64_t vectors = GsaRows::StrideOf(channels / p.heads) / kGsaVector;
  // Offsets within a sample.
  if (PositionsOf(p.extent) > max / (p.heads * vectors * kGsaVector)) return false;
  const int64_t per_head = p.key_channels / p.heads * (p.value_channels / p.heads);
  // At least the number of blocks of every kernel.
  const int64_t tiles = PositionsOf(p.extent) + 1;
  const int64_t blocks[] = {Blocks(PositionsOf(p.extent), 128) * (3 * vectors + 3), tiles * vectors,
                            GsaContextRun::Ranges(PositionsOf(p.extent)) * vectors * vectors,
                            Blocks(per_head, kGsaThreads)};
  for (const int64_t count : blocks) {
    if (count > kMaxBlocks / (matrices < 1 ? 1 : matrices)) return false;
  }
  return per_head < kMaxBlocks;
}

template <typename T, int kTiles, bool kTensorCores, typename Launch>
void RunGsaAxisOf(const GsaCuda& run, int axis, const GsaRows& values, bool last, const Launch& launch) {
  const GsaAxis of = run.Axis<T>(axis, values, last, kTiles);
  const bool softmax = run.p.content == GsaContent::kAxial;
  auto kernel = softmax ? GsaAxisKernel<T, kTiles, true, false, kTensorCores>
                        : GsaAxisKernel<T, kTiles, false, false, kTensorCores>;
  if constexpr (kTensorCores) {
    if (GsaAxisWithMma<T, kTiles, false, true>::CanHold(of.length, of.q.stride)) {
      kernel =
          softmax ? GsaAxisKernel<T, kTiles, true, true, true> : GsaAxisKernel<T, kTiles, false, true, true>;
    }
  }
  launch(kernel, of.Blocks(), kGsaThreads, of);
}

// Calls `launch` (see launch.cuh). Scores are computed again for every block of channels.
template <typename T, bool kTensorCores, typename Launch>
void RunGsaAxis(const GsaCuda& run, int axis, const GsaRows& values, bool last, const Launch& launch) {
  if (values.stride == kGsaVector) {
    RunGsaAxisOf<T, 1, kTensorCores>(run, axis, values, last, launch);
  } else {
    RunGsaAxisOf<T, 2, kTensorCores>(run, axis, values, last, launch);
  }
}

// Calls `launch` for each kernel in order. T is the maps' type.
template <typename T, bool kTensorCores = sizeof(T) == 2, typename Launch>
void RunGsaCuda(const GsaProblem& p, float* workspace, const Launch& launch) {
  const GsaCuda run(p, workspace);
  if (IsModule(p)) {
    const GsaProjection projection = run.Projection();
    launch(GsaProjectKernel<T, kTensorCores>, projection.Blocks(), kGsaThreads, projection);
  } else {
    const auto pack = [&](const FeatureMap& map, const GsaRows& rows) {
      const GsaPack packed = run.Pack(map, rows);
      launch(GsaPackKernel<T>, packed.Blocks(), kGsaThreads, packed);
    };
    pack(p.q, run.q);
    if (p.content != GsaContent::kNone) pack(p.k, run.k);
    pack(p.v, run.v);
  }
  if (p.content == GsaContent::kGlobal) {
    const GsaContextRun context = run.Context();
    launch(GsaContextKernel<T>, context.PartialBlocks(), kGsaThreads, context);
    launch(GsaContextMergeKernel<T>, context.MergeBlocks(), kGsaThreads, context);
  }
  if (AxesOf(p) == 2) {
    RunGsaAxis<T, kTensorCores>(run, 0, run.v, false, launch);
    RunGsaAxis<T, kTensorCores>(run, 1, run.between, true, launch);
  } else {
    const int axis = p.embedding[0] != nullptr ? 0 : p.embedding[1] != nullptr ? 1 : -1;
    RunGsaAxis<T, kTensorCores>(run, axis, run.v, true, launch);
  }
}

}  // namespace saccade::kernels
