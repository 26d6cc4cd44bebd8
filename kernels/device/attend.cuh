// The strided attention core: what every operator that multiplies queries, keys and values shares on CUDA.
// What it computes is in attend_problem.h; an operator's own .cuh is a plan, a few kernels that prepare and
// fold, and between them
//   RunAttend<T>(problem, workspace, launch)   with AttendWorkspaceFloats(problem) floats of workspace
//   RunProduct<T>(problem, launch)             the logits alone, keys being the channels of the result: a 1x1
//                                              convolution
// `T` is the maps' type: float, DeviceHalf or DeviceBFloat16; `launch` is one of launch.cuh. Workspaces may
// hold anything, and a view's pointer may be into the same workspace.
//
// One block takes 64 queries, up to 256 channels of values, and all keys or, where queries are few, a stretch
// of them; the stretches are merged by a second kernel in their order. Into how many the keys are split
// depends on the sample's valid queries and keys alone. Of 16-bit maps, weights and coefficients are rounded
// to 16 bits and multiplied on the tensor cores (float32 arithmetic below sm_80); of float32 maps all is
// float32. So are sums, maxima and the softmax, always.
//
// Values of more than 256 channels take several blocks, and each needs the coefficients, which cost `depth`
// products apiece. Where there are fewer logits than numbers in q and k, they go through the workspace:
// computed once, in float32, and read by every block; of many channels in several sums, as there are few
// tiles to keep a chip busy. Where there are more logits (a softmax over a whole map by itself), each block
// computes them anew rather than write what nobody has memory for.
#pragma once

#include "kernels/device/attend_kernels.cuh"
#include "kernels/device/attend_merge.cuh"
#include "kernels/device/launch.cuh"

namespace saccade::kernels {

// Whether the grids can hold it, and every sample's positions fit 32 bits.
inline bool AttendFits(const AttendProblem& p) {
  const Attend run(p, nullptr);
  const int64_t matrices = p.batch * p.heads;
  const int64_t most = run.slots > run.query_tiles * 16 ? run.slots : run.query_tiles * 16;
  return PositionsOf(p.queries) < kMaxBlocks && PositionsOf(p.keys) < kMaxBlocks &&
         most * (p.value_channels / Attend::kMergeRows + 1) <= kMaxBlocks / (matrices < 1 ? 1 : matrices) &&
         Attend::Planes(p.depth) * run.query_tiles * Attend::Tiles(run.all_keys) <=
             kMaxBlocks / (matrices < 1 ? 1 : matrices);
}

inline bool LogitsThroughWorkspace(const AttendProblem& p) {
  const int64_t queries = PositionsOf(p.queries);
  const int64_t keys = PositionsOf(p.keys);
  return p.logits.data == nullptr && p.value_channels > Attend::kValueTiles * kTile &&
         queries * keys <= (queries + keys) * p.depth;
}

// Of one plane.
inline int64_t LogitFloats(const AttendProblem& p) {
  return p.batch * p.heads * PositionsOf(p.queries) * PositionsOf(p.keys);
}

inline int64_t AttendWorkspaceFloats(const AttendProblem& p) {
  const int64_t planes = LogitsThroughWorkspace(p) ? Attend::Planes(p.depth) : 0;
  return planes * LogitFloats(p) + Attend(p, nullptr).FloatsOfWorkspace();
}

// Zeroes what lies beyond the valid extent.
template <typename T, typename Launch>
void RunClear(const AttendProblem& p, int64_t channels, const Launch& launch) {
  if (p.queries.valid == nullptr || !p.clear) return;
  const AttendClear run = {p.out, p.queries, p.heads, channels, PositionsOf(p.queries)};
  launch(AttendClearKernel<T>, p.batch * p.heads * Attend::Tiles(PositionsOf(p.queries)), kBlockThreads, run);
}

template <typename T, bool kTensorCores, typename Launch>
void RunLogits(const AttendProblem& p, int planes, const Launch& launch) {
  Attend run(p, nullptr);
  run.planes = planes;
  run.plane_stride = LogitFloats(p);
  launch(AttendProductKernel<T, kTensorCores>,
         p.batch * p.heads * planes * run.query_tiles * Attend::Tiles(run.all_keys), kBlockThreads, run);
}

// out[i][j] = scale[j] * (the problem's scale * q_i k_j + biases) + shift[j] + residual[i][j]. Of the
// problem, v, value_channels, logits and what is about the softmax are not looked at.
template <typename T, bool kTensorCores = sizeof(T) == 2, typename Launch>
void RunProduct(AttendProblem p, const Launch& launch) {
  for (int64_t& stride : p.logits_key_stride) stride = 0;
  p.logits_key_stride[kMaxSpatialDims - 1] = p.out.channel_stride;
  RunClear<T>(p, PositionsOf(p.keys), launch);
  RunLogits<T, kTensorCores>(p, 1, launch);
}

// The problem with its logits given, in a place of the workspace where RunLogits has put them.
inline AttendProblem WithLogitsIn(float* workspace, const AttendProblem& p) {
  AttendProblem given = p;
  const int64_t keys = PositionsOf(p.keys);
  given.logits = MatrixRows(static_cast<const float*>(workspace), keys, 1, PositionsOf(p.queries) * keys,
                            p.heads * PositionsOf(p.queries) * keys);
  given.logits.row_stride[1] = keys * p.queries.size[2];
  given.logits.row_stride[0] = given.logits.row_stride[1] * p.queries.size[1];
  given.logits_key_stride[2] = 1;
  given.logits_key_stride[1] = p.keys.size[2];
  given.logits_key_stride[0] = p.keys.size[1] * p.keys.size[2];
  given.scale = 1;
  given.key_bias = given.query_bias = nullptr;
  return given;
}

template <typename T, bool kTensorCores = sizeof(T) == 2, typename Launch>
void RunAttend(AttendProblem p, float* workspace, const Launch& launch) {
  RunClear<T>(p, p.value_channels, launch);
  int planes = 1;
  if (LogitsThroughWorkspace(p)) {
    planes = static_cast<int>(Attend::Planes(p.depth));
    AttendProblem given = WithLogitsIn(workspace, p);
    p.out = MatrixRows(workspace, 0, 1, given.logits.head_stride, given.logits.batch_stride);
    for (int d = 0; d < kMaxSpatialDims; ++d) {
      p.out.row_stride[d] = given.logits.row_stride[d];
      p.logits_key_stride[d] = given.logits_key_stride[d];
    }
    p.channel_scale = p.channel_shift = nullptr;
    p.residual.data = nullptr;
    RunLogits<T, kTensorCores>(p, planes, launch);
    workspace += planes * LogitFloats(p);
    p = given;
  }
  Attend run(p, workspace);
  run.planes = planes;
  run.plane_stride = LogitFloats(p);
  const auto kernel = p.value_channels <= kTile ? AttendKernel<T, 1, kTensorCores>
                                                : AttendKernel<T, Attend::kValueTiles, kTensorCores>;
  launch(kernel, p.batch * p.heads * run.slots * run.value_chunks, kBlockThreads, run);
  if (run.slots > run.query_tiles) {
    const int64_t few = (p.value_channels + Attend::kMergeRows - 1) / Attend::kMergeRows;
    const int64_t blocks =
        run.out_adjacent ? few : kTile / Attend::kMergeRows * Attend::Tiles(p.value_channels);
    launch(AttendMergeKernel<T>, p.batch * p.heads * run.query_tiles * blocks, kBlockThreads, run);
  }
}

#if defined(__CUDACC__)
// Compiled once, in attend_float32.cu and its like, not with every operator.
#define SACCADE_ATTEND_INSTANTIATIONS(extern, T)                                                 \
  extern template void RunAttend<T, sizeof(T) == 2>(AttendProblem, float*, const StreamLaunch&); \
  extern template void RunProduct<T, sizeof(T) == 2>(AttendProblem, const StreamLaunch&)
SACCADE_ATTEND_INSTANTIATIONS(extern, float);
SACCADE_ATTEND_INSTANTIATIONS(extern, DeviceHalf);
SACCADE_ATTEND_INSTANTIATIONS(extern, DeviceBFloat16);
#endif

}  // namespace saccade::kernels
