// One call of the operator as plain pointers and numbers: what the tensor bindings hand to the CPU and CUDA
// code, which know no LibTorch.
#pragma once

#include <cstdint>

#include "kernels/common/feature_map.h"

namespace saccade::kernels {

// [B, C, N], N being all spatial dimensions in row-major order. Strides are in elements.
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
  // Which of the two all four are: positions adjacent (NC*) or channels adjacent (channels-last).
  bool channels_last = false;
  bool global_term = true;

  // Weights in the type that sums are kept in: float, or double for double.
  const void* w = nullptr;  // [C], never null
  // Where Q or K is a transform of x: [heads, C], each head's w folded into the transform, so that a score is
  // a product with all of x's channels. Null: w with the head's own channels.
  const void* query_scores = nullptr;
  const void* key_scores = nullptr;

  // The module: set together, or value_weight null for the bare operator, which divides by N instead.
  const void* value_weight = nullptr;  // [C, C]
  const void* scale = nullptr;         // [C]
  const void* shift = nullptr;         // [C]
  bool residual = false;
};

}  // namespace saccade::kernels
