// One call of the operator as plain pointers and numbers, as the tensor bindings pass it to the CPU and CUDA
// code, which do not depend on LibTorch.
#pragma once

#include <cstdint>

#include "kernels/common/feature_map.h"

namespace saccade::kernels {

enum class GsaContent { kNone, kGlobal, kAxial };

// Weights are dense and in the accumulation type: float, or double for double maps.
struct GsaProblem {
  int64_t batch = 0;
  Extent extent;                  // of all maps: size[1] rows of size[2]
  Dtype dtype = Dtype::kFloat32;  // of all maps
  int64_t heads = 1;
  int64_t key_channels = 0;    // Ck of all heads together
  int64_t value_channels = 0;  // C of the result, all heads together
  GsaContent content = GsaContent::kGlobal;

  OutputMap out;  // dense, NC* or channels-last

  // The bare operator; k is not set if content is kNone.
  FeatureMap q, k, v;

  // The module; `channels` is 0 for the bare operator. Biases may be null. Keys have no bias, because it
  // cancels.
  int64_t channels = 0;
  FeatureMap x;
  const void* query_weight = nullptr;  // [Ck, channels]
  const void* query_bias = nullptr;    // [Ck]
  const void* key_weight = nullptr;    // [Ck, channels]
  const void* value_weight = nullptr;  // [C, channels]
  const void* value_bias = nullptr;    // [C]

  // By axis, 0 along the column and 1 along the row: [2 reach - 1, Ck / heads], or null.
  const void* embedding[2] = {nullptr, nullptr};
  int64_t reach[2] = {0, 0};

  // [C] each, or null in pairs: between the two axes, and after everything.
  const void* middle_scale = nullptr;
  const void* middle_shift = nullptr;
  const void* scale = nullptr;
  const void* shift = nullptr;
};

inline bool IsModule(const GsaProblem& problem) { return problem.channels > 0; }

// Returns the number of axes with attention along them.
inline int AxesOf(const GsaProblem& problem) {
  return (problem.embedding[0] != nullptr ? 1 : 0) + (problem.embedding[1] != nullptr ? 1 : 0);
}

}  // namespace saccade::kernels
