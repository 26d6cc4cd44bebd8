// One call of regular attention as plain pointers and numbers, as the tensor bindings pass it to the CPU and
// CUDA code, which do not depend on LibTorch. C++17, because nvcc compiles it too.
#pragma once

#include <cstdint>

#include "kernels/common/feature_map.h"

namespace saccade::kernels {

enum class AttentionKind {
  kSoftmax,  // each query's coefficients over the keys sum to one
  kPooled,   // the same, over keys and values max-pooled over two positions per side
  kMean,     // coefficients are similarities divided by the number of keys ("Attn_1/N")
};

// Queries, keys or values: a map, or weight * map + bias if there is a weight.
struct AttentionInput {
  FeatureMap map;
  int64_t channels = 0;          // of the map
  const void* weight = nullptr;  // [transformed channels, channels]
  const void* bias = nullptr;    // [transformed channels]; only with a weight
};

// O = V f(K^T Q) for each of `heads` contiguous groups of channels, and out = scale * (out_weight O) + shift
// + residual, where each of these four is applied only if it is given.
//
// For kPooled, K and V are transforms of P(map), where P is the maximum over windows of two positions along
// each spatial dimension, with stride two; at the end of the valid extent a window may be smaller. Pooling
// before the transforms is what the papers' counts and Wang et al.'s code have. So there are ceil(h/2)
// ceil(w/2) keys for h x w valid positions.
//
// Weights are in the accumulation type: float, or double for double maps.
struct AttentionProblem {
  AttentionKind kind = AttentionKind::kSoftmax;
  Dtype dtype = Dtype::kFloat32;  // of every map
  int64_t batch = 0;
  int64_t heads = 1;
  Extent extent;  // of every map

  int64_t key_channels = 0;    // of K and Q, transformed
  int64_t value_channels = 0;  // of V, transformed
  int64_t out_channels = 0;    // of the result: value_channels if there is no out_weight

  AttentionInput q, k, v;
  double logit_scale = 1;  // factor of the similarities; 1 for kMean

  const void* out_weight = nullptr;  // [out_channels, value_channels]
  const void* scale = nullptr;       // [out_channels]
  const void* shift = nullptr;       // [out_channels]
  FeatureMap residual;               // [B, out_channels, *]; data is null if there is none
  OutputMap out;                     // [B, out_channels, *]
};

// Returns the number of keys along a dimension with `positions` valid positions.
inline int64_t AttentionKeysAlong(AttentionKind kind, int64_t positions) {
  return kind == AttentionKind::kPooled ? (positions + 1) / 2 : positions;
}

}  // namespace saccade::kernels
