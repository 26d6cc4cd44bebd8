// One call of the operator as plain pointers and numbers, as the tensor bindings pass it to the CPU and CUDA
// code, which do not depend on LibTorch.
#pragma once

#include <cstdint>

#include "kernels/common/feature_map.h"

namespace saccade::kernels {

// A map [B, C, N], where N is all spatial dimensions in row-major order. Strides are in elements.
struct FlatMap {
  const void* data = nullptr;
  int64_t batch_stride = 0;
  int64_t channel_stride = 0;
  int64_t position_stride = 0;
};

inline bool SameMap(const FlatMap& a, const FlatMap& b) {
  return a.data == b.data && a.batch_stride == b.batch_stride && a.channel_stride == b.channel_stride &&
         a.position_stride == b.position_stride;
}

struct SaoProblem {
  int64_t batch = 0;
  int64_t channels = 0;
  int64_t heads = 1;
  int64_t positions = 0;
  Extent extent;

  FlatMap q, k, v;      // all three are x in the module
  void* out = nullptr;  // dense
  // The layout of all four: positions adjacent (NC*) or channels adjacent (channels-last).
  bool channels_last = false;
  bool global_term = true;

  // Weights are of the accumulation type: float, or double for double maps.
  const void* w = nullptr;  // [C], never null
  // If Q or K is a transform of x: [heads, C], each head's w folded into the transform, so that a score is a
  // product with all channels of x. Null: use w with the head's own channels.
  const void* query_scores = nullptr;
  const void* key_scores = nullptr;

  // The module's weights: set together. value_weight is null for the bare operator, which divides by N
  // instead.
  const void* value_weight = nullptr;  // [C, C]
  const void* scale = nullptr;         // [C]
  const void* shift = nullptr;         // [C]
  bool residual = false;
};

}  // namespace saccade::kernels
