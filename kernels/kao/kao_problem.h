// One call of the operator as plain pointers and numbers, as the tensor bindings pass it to the CPU and CUDA
// code, which do not depend on LibTorch. C++17, because nvcc compiles it too.
#pragma once

#include <cstdint>

#include "kernels/common/feature_map.h"

namespace saccade::kernels {

enum class KaoKind {
  kMapQueries,      // KAO_KV: every position is a query
  kAverageQueries,  // KAO_QKV: the averages are queries, and the result is an outer sum
};

struct KaoProblem {
  KaoKind kind = KaoKind::kMapQueries;
  int64_t batch = 0;
  int64_t heads = 1;
  Dtype dtype = Dtype::kFloat32;
  Extent extent;  // two spatial dimensions

  // Channels of the maps, and of queries, keys and values after the transforms.
  int64_t query_map_channels = 0;  // q and k
  int64_t value_map_channels = 0;  // v
  int64_t key_channels = 0;
  int64_t value_channels = 0;

  FeatureMap q, k, v;  // all three are x in the module
  OutputMap out;       // [B, value_channels, H, W], dense

  // Null means identity, 0 or 1. Weights are of the accumulation type: float, or double for double maps.
  const void* query_weight = nullptr;       // [key_channels, query_map_channels]
  const void* key_weight = nullptr;         // [key_channels, query_map_channels]
  const void* value_weight = nullptr;       // [value_channels, value_map_channels]
  const void* query_bias = nullptr;         // [key_channels]
  const void* value_bias = nullptr;         // [value_channels]
  const void* coefficient_scale = nullptr;  // [heads]
  const void* scale = nullptr;              // [value_channels]
  const void* shift = nullptr;              // [value_channels]
  bool residual = false;                    // module only: adds q
};

inline int64_t KaoRows(const KaoProblem& p) { return p.extent.size[1]; }
inline int64_t KaoColumns(const KaoProblem& p) { return p.extent.size[2]; }

inline bool SameMap(const FeatureMap& a, const FeatureMap& b) {
  bool same = a.data == b.data && a.batch_stride == b.batch_stride && a.channel_stride == b.channel_stride;
  for (int d = 0; d < kMaxSpatialDims; ++d) same = same && a.spatial_stride[d] == b.spatial_stride[d];
  return same;
}

// Returns true if the query transform of a map should be folded into the keys instead of applied to the map.
// A position then costs heads * keys * query_map_channels products instead of (query_map_channels + keys) *
// key_channels.
inline bool FoldsQueries(const KaoProblem& p, int64_t keys) {
  return p.query_weight != nullptr &&
         p.heads * keys * p.query_map_channels <= (p.query_map_channels + keys) * p.key_channels;
}

}  // namespace saccade::kernels
