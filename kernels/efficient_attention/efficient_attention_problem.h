// One call of the operator as plain pointers and numbers, as the tensor bindings pass it to the CPU and CUDA
// code, which do not depend on LibTorch.
#pragma once

#include <cstdint>

#include "kernels/common/feature_map.h"

namespace saccade::kernels {

struct EfficientAttentionProblem {
  int64_t batch = 0;
  Extent extent;                  // of all maps
  Dtype dtype = Dtype::kFloat32;  // of all maps
  int64_t heads = 1;              // number of groups of key and value channels
  int64_t key_channels = 0;       // dk, all heads together
  int64_t value_channels = 0;     // dv, all heads together
  bool softmax = true;            // false: scaling, keys and queries are divided by sqrt(N)

  OutputMap out;  // dense, NC* or channels-last

  // The bare operator uses all three, and its output has dv channels.
  FeatureMap q, k, v;

  // The module uses x; `channels` is 0 for the bare operator.
  int64_t channels = 0;
  FeatureMap x;
  bool residual = false;
  // Weights are dense and in the accumulation type: float, or double for double maps. Biases may be null.
  const void* query_weight = nullptr;  // [dk, channels]
  const void* query_bias = nullptr;    // [dk]
  const void* key_weight = nullptr;    // [dk, channels]
  const void* key_bias = nullptr;      // [dk]; cancels in the softmax
  const void* value_weight = nullptr;  // [dv, channels]
  const void* value_bias = nullptr;    // [dv]
  const void* out_weight = nullptr;    // [out_channels, dv], or null: then out_channels is dv
  const void* out_bias = nullptr;      // [out_channels], only with out_weight

  int64_t out_channels = 0;  // of the result; dv for the bare operator
};

inline bool IsModule(const EfficientAttentionProblem& problem) { return problem.channels > 0; }

}  // namespace saccade::kernels
