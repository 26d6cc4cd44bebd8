// Non-maximum suppression on CUDA: two kernels on raw pointers, compiled by nvcc and, for the emulator, by
// g++.
//   mask    blocks of 64 x 64 boxes, by descending score: which of the later boxes each box suppresses
//   reduce  one block visits the boxes in order, 64 at a time, and writes the indices of those that no
//           earlier kept box suppresses
// Overlaps are rounded step by step, without fused multiply-add, as on the CPU.
#pragma once

#include "kernels/common/device.h"
#include "kernels/nms/nms_problem.h"

namespace saccade::kernels {

// The argument of both kernels.
struct NmsCuda {
  static constexpr int kTile = 64;      // boxes per word of the mask
  static constexpr int kThreads = 256;  // of the reduce kernel
  static constexpr int64_t kMaxBoxes = 128 * 1024;

  // `by_score` holds the boxes' indices by descending score; `words` has WordsOfMask() words and may be
  // uninitialised.
  NmsCuda(const NmsProblem& problem, const int64_t* by_score, uint64_t* words)
      : p(problem), order(by_score), mask(words) {
    tiles = (p.count + kTile - 1) / kTile;
    threshold32 = RoundedDown<float>(p.iou_threshold);
  }

  int64_t WordsOfMask() const { return p.count * tiles; }

  NmsProblem p;
  const int64_t* order;
  uint64_t* mask;  // [count, tiles]; only words from a box's own tile on are written
  int64_t tiles;
  float threshold32;
};

__device__ inline float NmsProduct(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}
__device__ inline double NmsProduct(double a, double b) {
#if defined(__CUDA_ARCH__)
  return __dmul_rn(a, b);
#else
  return a * b;
#endif
}

__device__ inline int NmsBitsIn(uint64_t word) {
#if defined(__CUDA_ARCH__)
  return __popcll(word);
#else
  return __builtin_popcountll(word);
#endif
}

template <typename A>
struct NmsBox {
  __device__ explicit NmsBox(const A* box) : x1(box[0]), y1(box[1]), x2(box[2]), y2(box[3]) {
    area = NmsProduct(x2 - x1, y2 - y1);
  }
  __device__ bool Over(const NmsBox& other, A threshold) const {
    const A width = (other.x2 < x2 ? other.x2 : x2) - (other.x1 > x1 ? other.x1 : x1);
    const A height = (other.y2 < y2 ? other.y2 : y2) - (other.y1 > y1 ? other.y1 : y1);
    const A intersection = NmsProduct(width > 0 ? width : A(0), height > 0 ? height : A(0));
    return intersection / (other.area + area - intersection) > threshold;
  }
  A x1, y1, x2, y2, area;
};

__device__ inline float NmsThreshold(const NmsCuda& run, float) { return run.threshold32; }
__device__ inline double NmsThreshold(const NmsCuda& run, double) { return run.p.iou_threshold; }

// grid (tiles, tiles): x is the tile of boxes that may be suppressed, y that of boxes that suppress.
template <typename A>
__global__ void __launch_bounds__(NmsCuda::kTile) NmsMaskKernel(NmsCuda run) {
  SACCADE_SHARED(A, coordinates, 4 * NmsCuda::kTile);
  SACCADE_SHARED(int64_t, labels, NmsCuda::kTile);
  if (blockIdx.x < blockIdx.y) return;
  const auto* boxes = static_cast<const A*>(run.p.boxes);
  const int64_t first = static_cast<int64_t>(blockIdx.x) * NmsCuda::kTile;
  const int64_t left = run.p.count - first;
  const int count = left < NmsCuda::kTile ? static_cast<int>(left) : NmsCuda::kTile;
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < count) {
    const int64_t index = run.order[first + thread];
    for (int i = 0; i < 4; ++i) coordinates[4 * thread + i] = boxes[4 * index + i];
    labels[thread] = run.p.labels == nullptr ? 0 : run.p.labels[index];
  }
  __syncthreads();
  const int64_t row = static_cast<int64_t>(blockIdx.y) * NmsCuda::kTile + thread;
  if (row >= run.p.count) return;
  const int64_t index = run.order[row];
  const NmsBox<A> box(boxes + 4 * index);
  const int64_t label = run.p.labels == nullptr ? 0 : run.p.labels[index];
  uint64_t word = 0;
  for (int i = blockIdx.x == blockIdx.y ? thread + 1 : 0; i < count; ++i) {
    if (labels[i] == label && box.Over(NmsBox<A>(coordinates + 4 * i), NmsThreshold(run, A(0)))) {
      word |= uint64_t{1} << i;
    }
  }
  run.mask[row * run.tiles + blockIdx.x] = word;
}

// Returns the boxes of one tile that neither an earlier tile nor an earlier kept box of the tile suppresses,
// at most `room`.
__device__ inline uint64_t NmsKept(uint64_t suppressed, const uint64_t* own, int count, int64_t room) {
  uint64_t kept = 0;
  for (int i = 0; i < count && room > 0; ++i) {
    if ((suppressed >> i & 1) != 0) continue;
    kept |= uint64_t{1} << i;
    suppressed |= own[i];
    --room;
  }
  return kept;
}

// grid (1), with dynamic shared memory for one word per tile.
template <typename A>
__global__ void __launch_bounds__(NmsCuda::kThreads) NmsReduceKernel(NmsCuda run) {
  SACCADE_DYNAMIC_SHARED(uint64_t, suppressed);
  SACCADE_SHARED(uint64_t, own, NmsCuda::kTile);
  SACCADE_SHARED(uint64_t, kept_here, 1);
  const int64_t thread = threadIdx.x;
  for (int64_t i = thread; i < run.tiles; i += NmsCuda::kThreads) suppressed[i] = 0;
  int64_t written = 0;
  for (int64_t tile = 0; tile < run.tiles && written < run.p.out_size; ++tile) {
    const int64_t first = tile * NmsCuda::kTile;
    const int64_t left = run.p.count - first;
    const int count = left < NmsCuda::kTile ? static_cast<int>(left) : NmsCuda::kTile;
    if (thread < count) own[thread] = run.mask[(first + thread) * run.tiles + tile];
    __syncthreads();
    if (thread == 0) kept_here[0] = NmsKept(suppressed[tile], own, count, run.p.out_size - written);
    __syncthreads();
    const uint64_t kept = kept_here[0];
    if (thread < NmsCuda::kTile && (kept >> thread & 1) != 0) {
      run.p.out[written + NmsBitsIn(kept & ((uint64_t{1} << thread) - 1))] = run.order[first + thread];
    }
    for (int64_t i = tile + 1 + thread; i < run.tiles; i += NmsCuda::kThreads) {
      uint64_t word = suppressed[i];
      for (int row = 0; row < count; ++row) {
        if ((kept >> row & 1) != 0) word |= run.mask[(first + row) * run.tiles + i];
      }
      suppressed[i] = word;
    }
    written += NmsBitsIn(kept);
    // What the next round writes is read again only behind its first barrier.
  }
  for (int64_t i = written + thread; i < run.p.out_size; i += NmsCuda::kThreads) run.p.out[i] = -1;
  if (thread == 0) *run.p.out_count = written;
}

// Calls launch(kernel, grid.x, grid.y, threads, dynamic shared bytes, run) for each kernel in order.
template <typename A, typename Launch>
void RunNmsCuda(const NmsProblem& p, const int64_t* order, uint64_t* mask, const Launch& launch) {
  const NmsCuda run(p, order, mask);
  const auto tiles = static_cast<unsigned>(run.tiles);
  if (tiles > 0) launch(NmsMaskKernel<A>, tiles, tiles, NmsCuda::kTile, size_t{0}, run);
  launch(NmsReduceKernel<A>, 1u, 1u, NmsCuda::kThreads, run.tiles * sizeof(uint64_t), run);
}

}  // namespace saccade::kernels
