// The strided attention core: the CUDA code shared by all operators that multiply queries, keys and values.
// attend_problem.h defines what it computes. An operator's own .cuh launches a few kernels that prepare and
// fold data, and between them calls
//   RunAttend<T>(problem, workspace, launch)   with AttendWorkspaceFloats(problem) floats of workspace
//   RunProduct<T>(problem, launch)             the logits alone, with keys as the result's channels: a 1x1
//                                              convolution
// `T` is the maps' type: float, DeviceHalf or DeviceBFloat16; `launch` is one of launch.cuh. Workspaces may
// be uninitialised, and a view may point into the same workspace.
//
// One block processes 64 queries, up to 256 value channels, and all keys or, if there are few queries, a
// range of them; a second kernel merges the ranges in their order. The number of ranges depends only on the
// sample's valid queries and keys. For 16-bit maps, weights and coefficients are rounded to 16 bits and
// multiplied on the tensor cores (below sm_80 in float32 arithmetic); for float32 maps all products are
// float32. Sums, maxima and the softmax are always float32.
//
// More than 256 value channels take several blocks, each of which needs the coefficients, at `depth` products
// per coefficient. If there are fewer logits than elements of q and k, the logits are computed once in
// float32, written to the workspace and read by every block. If there are more logits (such as a softmax of a
// whole map over itself), each block recomputes them, because storing them would take too much memory. If
// `depth` is large, a logit is the sum of several partial sums. Different blocks compute them if there are
// too few tiles to occupy the GPU. All of these ways add the same numbers in the same order, so the choice
// between them, which depends on the padded extents, does not change the bits.
#pragma once

#include "kernels/device/attend_kernels.cuh"
#include "kernels/device/attend_merge.cuh"
#include "kernels/device/launch.cuh"

namespace saccade::kernels {

// Number of partial sums of a logit that the workspace holds: one, or all of them where the tiles are too few
// to occupy a GPU.
inline int64_t StoredPlanes(const AttendProblem& p) {
  const int64_t tiles =
      p.batch * p.heads * Attend::Tiles(PositionsOf(p.queries)) * Attend::Tiles(PositionsOf(p.keys));
  return tiles < Attend::kBlocksWanted ? Attend::Planes(p.depth) : 1;
}

// Returns true if the grids can hold the problem and every sample's positions fit in 32 bits.
inline bool AttendFits(const AttendProblem& p) {
  const Attend run(p, nullptr);
  const int64_t matrices = p.batch * p.heads;
  const int64_t blocks_each = kMaxBlocks / (matrices < 1 ? 1 : matrices);
  return PositionsOf(p.queries) < kMaxBlocks && PositionsOf(p.keys) < kMaxBlocks &&
         run.slots * run.value_chunks <= blocks_each && run.query_tiles * run.MergeBlocks() <= blocks_each &&
         StoredPlanes(p) * run.query_tiles * Attend::Tiles(run.all_keys) <= blocks_each;
}

inline bool LogitsThroughWorkspace(const AttendProblem& p) {
  const int64_t queries = PositionsOf(p.queries);
  const int64_t keys = PositionsOf(p.keys);
  return p.logits.data == nullptr && p.value_channels > Attend::kMaxValueTiles * kTile &&
         queries * keys <= (queries + keys) * p.depth;
}

// Size of one plane of logits.
inline int64_t LogitFloats(const AttendProblem& p) {
  return p.batch * p.heads * PositionsOf(p.queries) * PositionsOf(p.keys);
}

inline int64_t AttendWorkspaceFloats(const AttendProblem& p) {
  const int64_t planes = LogitsThroughWorkspace(p) ? StoredPlanes(p) : 0;
  return planes * LogitFloats(p) + Attend(p, nullptr).FloatsOfWorkspace();
}

// Writes zeros outside the valid extent.
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

// out[i][j] = channel_scale[j] * (scale * q_i k_j + biases) + channel_shift[j] + residual[i][j]. Ignores the
// problem's v, value_channels, logits and softmax options.
template <typename T, bool kTensorCores = sizeof(T) == 2, typename Launch>
void RunProduct(AttendProblem p, const Launch& launch) {
  for (int64_t& stride : p.logits_key_stride) stride = 0;
  p.logits_key_stride[kMaxSpatialDims - 1] = p.out.channel_stride;
  RunClear<T>(p, PositionsOf(p.keys), launch);
  RunLogits<T, kTensorCores>(p, 1, launch);
}

// Returns the problem with its logits given, at the place in the workspace where RunLogits writes them, still
// without scale and biases.
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
  return given;
}

template <typename T, bool kTensorCores = sizeof(T) == 2, typename Launch>
void RunAttend(AttendProblem p, float* workspace, const Launch& launch) {
  RunClear<T>(p, p.value_channels, launch);
  int planes = 1;
  if (LogitsThroughWorkspace(p)) {
    planes = static_cast<int>(StoredPlanes(p));
    AttendProblem given = WithLogitsIn(workspace, p);
    p.out = MatrixRows(workspace, 0, 1, given.logits.head_stride, given.logits.batch_stride);
    for (int d = 0; d < kMaxSpatialDims; ++d) {
      p.out.row_stride[d] = given.logits.row_stride[d];
      p.logits_key_stride[d] = given.logits_key_stride[d];
    }
    p.channel_scale = p.channel_shift = p.key_bias = p.query_bias = nullptr;
    p.residual.data = nullptr;
    p.scale = 1;
    RunLogits<T, kTensorCores>(p, planes, launch);
    workspace += planes * LogitFloats(p);
    p = given;
  }
  Attend run(p, workspace);
  run.planes = planes;
  run.plane_stride = LogitFloats(p);
  const auto kernel = p.value_channels <= kTile ? AttendKernel<T, 1, kTensorCores>
                                                : AttendKernel<T, Attend::kMaxValueTiles, kTensorCores>;
  launch(kernel, p.batch * p.heads * run.slots * run.value_chunks, kBlockThreads, run);
  if (run.slots > run.query_tiles) {
    launch(AttendMergeKernel<T>, p.batch * p.heads * run.query_tiles * run.MergeBlocks(), kBlockThreads, run);
  }
}

#if defined(__CUDACC__)
// Instantiated once, in attend_float32.cu, attend_float16.cu and attend_bfloat16.cu, instead of with every
// operator.
#define SACCADE_ATTEND_INSTANTIATIONS(extern, T)                                                 \
  extern template void RunAttend<T, sizeof(T) == 2>(AttendProblem, float*, const StreamLaunch&); \
  extern template void RunProduct<T, sizeof(T) == 2>(AttendProblem, const StreamLaunch&)
SACCADE_ATTEND_INSTANTIATIONS(extern, float);
SACCADE_ATTEND_INSTANTIATIONS(extern, DeviceHalf);
SACCADE_ATTEND_INSTANTIATIONS(extern, DeviceBFloat16);
#endif

}  // namespace saccade::kernels
