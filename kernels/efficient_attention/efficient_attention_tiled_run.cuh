// Efficient attention of a 16-bit map with at most 256 channels and 64 key channels, on the tensor cores: its
// plan, for the host and the kernels. Three kernels replace the steps of efficient_attention.cuh:
//   gather (efficient_attention_gather.cuh)  step 1: for each range of positions of a sample, the sums of
//                                            exp2(logit - top) x over its positions, for every key channel
//   fold (efficient_attention_fold.cuh)      merges the ranges in their order; steps 2 and 3
//   apply (efficient_attention_apply.cuh)    step 4
// The number of ranges depends only on the sample's valid positions, and the tiles of a range are always the
// same, so that neither the batch nor the padding changes a sample's bits.
#pragma once

#include "kernels/efficient_attention/efficient_attention_problem.h"
#include "kernels/efficient_attention/efficient_attention_tiles.cuh"

namespace saccade::kernels {

struct EaTiled {
  // Two blocks for each of the 132 multiprocessors of an H100 or H200.
  static constexpr int kBlocks = 264;
  static constexpr int kMaxHeadValues = 1024;  // bounds the shared memory of the fold

  // `workspace` has FloatsOfWorkspace() floats, which may be uninitialised; null only to measure. It must be
  // aligned to 16 bytes.
  EaTiled(const EfficientAttentionProblem& problem, float* workspace) : p(problem) {
    const int64_t widest = p.channels > p.out_channels ? p.channels : p.out_channels;
    width = widest <= 64 ? 64 : widest <= 128 ? 128 : kEaMaxChannels;
    slots = Splits(Tiles(PositionsOf(p.extent)));
    const int64_t fair = (kBlocks + p.batch - 1) / (p.batch < 1 ? 1 : p.batch);
    blocks = fair < slots ? fair : slots;
    int64_t next = 0;
    const auto take = [&](int64_t floats) {
      float* const taken = workspace == nullptr ? nullptr : workspace + next;
      next += (floats + 3) / 4 * 4;
      return taken;
    };
    partial = take(p.batch * slots * PartialFloats());
    // 16-bit elements.
    folded = take(p.batch * width * kEaKeyRow / 2);
    query_weight = take(kEaKeys * (width + kEaPad) / 2);
    all_floats = next;
  }

  int64_t FloatsOfWorkspace() const { return all_floats; }

  __host__ __device__ static int64_t Tiles(int64_t positions) { return (positions + kEaTile - 1) / kEaTile; }
  // Returns the number of ranges into which a sample's tiles are split. Range s has the tiles s, s + splits,
  // s + 2 * splits and so on.
  __host__ __device__ static int64_t Splits(int64_t tiles) { return tiles < kBlocks ? tiles : kBlocks; }

  // A range's sums [64 keys][width], then 64 maxima, then 64 sums of coefficients.
  __host__ __device__ int64_t PartialFloats() const { return kEaKeys * (width + 2); }

  EfficientAttentionProblem p;
  int64_t width;  // of the tiles: channels and out_channels, rounded up
  int64_t slots;  // maximum number of ranges of a sample
  // Number of blocks for each sample, which share its tiles or ranges. It does not change the result.
  int64_t blocks;
  int64_t all_floats;
  float* partial;      // [B, slots] of PartialFloats()
  void* folded;        // [B, width][kEaKeyRow]: step 3's M, transposed and rounded, with zeros around it
  void* query_weight;  // [64][width + kEaPad]: rounded, with zeros around it
};

// True if the problem has the form that the tiled kernels compute. It depends neither on the batch nor on the
// positions.
inline bool EaTiledFits(const EfficientAttentionProblem& p) {
  const int64_t head_keys = p.key_channels / p.heads;
  return IsModule(p) && (p.dtype == Dtype::kBFloat16 || p.dtype == Dtype::kFloat16) &&
         p.channels <= kEaMaxChannels && p.out_channels <= kEaMaxChannels && p.key_channels <= kEaKeys &&
         (p.heads == 1 || head_keys % 8 == 0) && p.value_channels / p.heads <= EaTiled::kMaxHeadValues;
}

// Copies `rows` x `columns` floats to shared memory of `all_rows` rows that are `stride` elements apart,
// rounded, with zeros around them.
template <typename T>
__device__ void RoundMatrix(const float* from, int rows, int columns, int all_rows, int stride, T* to) {
  const bool fours = columns % 4 == 0 && reinterpret_cast<uintptr_t>(from) % sizeof(Float4) == 0;
  const int across = stride / 4;
  SACCADE_UNROLL_BY(4)
  for (int i = static_cast<int>(threadIdx.x); i < all_rows * across; i += kEaThreads) {
    const int row = i / across;
    const int column = i % across * 4;
    Float4 four = {};
    if (row < rows && column < columns) {
      const float* const at = from + static_cast<int64_t>(row) * columns + column;
      if (fours) {
        four = *reinterpret_cast<const Float4*>(at);
      } else {
        for (int e = 0; e < 4; ++e) four.at[e] = column + e < columns ? at[e] : 0.0f;
      }
    }
    StorePair(RoundPair(four.at[0], four.at[1], T()), to + row * stride + column);
    StorePair(RoundPair(four.at[2], four.at[3], T()), to + row * stride + column + 2);
  }
}

}  // namespace saccade::kernels
