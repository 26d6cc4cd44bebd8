// Products of the averages with weights: a few hundred rows, in float32. Independent products share a launch,
// because each of them alone would leave most of a GPU idle.
#pragma once

#include "kernels/common/device.h"
#include "kernels/device/launch.cuh"

namespace saccade::kernels {

// to[row][out] = scale * sum over k of from[row][k] weight[out][k] + bias[out], for every head.
struct KaoProduct {
  int64_t rows = 0;         // of all samples
  int64_t sample_rows = 1;  // of one sample
  int64_t heads = 1;
  int64_t depth = 0;
  int64_t outs = 0;
  const float* from = nullptr;
  int64_t from_stride = 0;  // of rows
  int64_t from_head_stride = 0;
  const float* weight = nullptr;
  int64_t weight_out_stride = 0;
  int64_t weight_depth_stride = 1;
  int64_t weight_head_stride = 0;
  float* to = nullptr;
  int64_t to_stride = 0;  // of a sample's rows
  int64_t to_sample_stride = 0;
  int64_t to_head_stride = 0;
  const float* scale = nullptr;  // one for each `scale_outs` outs, or null
  int64_t scale_outs = 1;
  const float* bias = nullptr;  // [outs] or null
};

// The kernel's argument: products without dependencies among them.
struct KaoProducts {
  static constexpr int kThreads = 256;
  static constexpr int kSpan = 32;  // rows and outs of a block
  static constexpr int kDepth = 32;
  static constexpr int kMaxCount = 3;

  KaoProduct& Add(const KaoProduct& product) {
    each[count] = product;
    return each[count++];
  }

  __host__ __device__ static int64_t Tiles(int64_t size) { return (size + kSpan - 1) / kSpan; }
  __host__ __device__ static int64_t BlocksOf(const KaoProduct& product) {
    return product.heads * Tiles(product.rows) * Tiles(product.outs);
  }

  KaoProduct each[kMaxCount];
  int count = 0;
};

struct alignas(8) KaoPair {
  float at[2];
};

// The threads form a square, and each has two neighbouring rows and outs. Launched with the blocks of all
// products, one after the other.
static __global__ void __launch_bounds__(KaoProducts::kThreads) KaoProductKernel(KaoProducts run) {
  constexpr int kSpan = KaoProducts::kSpan;
  constexpr int kDepth = KaoProducts::kDepth;
  constexpr int kStride = kSpan + 2;  // of k
  constexpr int kHeld = kSpan * kDepth / KaoProducts::kThreads;
  constexpr int kSide = 16;
  SACCADE_SHARED(KaoPair, lefts, kDepth * kStride / 2);
  SACCADE_SHARED(KaoPair, rights, kDepth * kStride / 2);
  int64_t block = blockIdx.x;
  int which = 0;
  for (; which + 1 < run.count && block >= KaoProducts::BlocksOf(run.each[which]); ++which) {
    block -= KaoProducts::BlocksOf(run.each[which]);
  }
  const KaoProduct& p = run.each[which];
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t first_out = block % KaoProducts::Tiles(p.outs) * kSpan;
  block /= KaoProducts::Tiles(p.outs);
  const int64_t first_row = block % KaoProducts::Tiles(p.rows) * kSpan;
  const int64_t head = block / KaoProducts::Tiles(p.rows);
  const float* const from = p.from + head * p.from_head_stride;
  const float* const weight = p.weight + head * p.weight_head_stride;
  const bool depth_adjacent = p.weight_depth_stride == 1;

  float left[kHeld], right[kHeld];
  const auto fetch = [&](int64_t begin) {
    SACCADE_UNROLL
    for (int i = 0; i < kHeld; ++i) {
      const int element = thread + i * KaoProducts::kThreads;
      const int64_t row = first_row + element / kDepth;
      const int64_t k = begin + element % kDepth;
      left[i] = row < p.rows && k < p.depth ? from[row * p.from_stride + k] : 0.0f;
      const int64_t out = first_out + (depth_adjacent ? element / kDepth : element % kSpan);
      const int64_t depth = begin + (depth_adjacent ? element % kDepth : element / kSpan);
      right[i] = out < p.outs && depth < p.depth
                     ? weight[out * p.weight_out_stride + depth * p.weight_depth_stride]
                     : 0.0f;
    }
  };
  float sums[2][2] = {};
  fetch(0);
  for (int64_t begin = 0; begin < p.depth; begin += kDepth) {
    auto* const left_tile = reinterpret_cast<float*>(lefts);
    auto* const right_tile = reinterpret_cast<float*>(rights);
    SACCADE_UNROLL
    for (int i = 0; i < kHeld; ++i) {
      const int element = thread + i * KaoProducts::kThreads;
      left_tile[element % kDepth * kStride + element / kDepth] = left[i];
      right_tile[depth_adjacent ? element % kDepth * kStride + element / kDepth
                                : element / kSpan * kStride + element % kSpan] = right[i];
    }
    __syncthreads();
    if (begin + kDepth < p.depth) fetch(begin + kDepth);
    // Each part is summed separately, so that rounding grows with the number of parts.
    float parts[2][2] = {};
    SACCADE_UNROLL_BY(8)
    for (int k = 0; k < kDepth; ++k) {
      const KaoPair a = lefts[k * kStride / 2 + thread / kSide];
      const KaoPair b = rights[k * kStride / 2 + thread % kSide];
      SACCADE_UNROLL
      for (int i = 0; i < 4; ++i) parts[i / 2][i % 2] += a.at[i / 2] * b.at[i % 2];
    }
    SACCADE_UNROLL
    for (int i = 0; i < 4; ++i) sums[i / 2][i % 2] += parts[i / 2][i % 2];
    __syncthreads();
  }
  SACCADE_UNROLL
  for (int i = 0; i < 4; ++i) {
    const int64_t row = first_row + thread / kSide * 2 + i / 2;
    const int64_t out = first_out + thread % kSide * 2 + i % 2;
    if (row >= p.rows || out >= p.outs) continue;
    float value = sums[i / 2][i % 2];
    if (p.scale != nullptr) value *= p.scale[out / p.scale_outs];
    if (p.bias != nullptr) value += p.bias[out];
    p.to[row / p.sample_rows * p.to_sample_stride + row % p.sample_rows * p.to_stride +
         head * p.to_head_stride + out] = value;
  }
}

template <typename Launch>
void RunKaoProducts(const KaoProducts& products, const Launch& launch) {
  int64_t blocks = 0;
  for (int i = 0; i < products.count; ++i) blocks += KaoProducts::BlocksOf(products.each[i]);
  launch(KaoProductKernel, blocks, KaoProducts::kThreads, products);
}

}  // namespace saccade::kernels
