// One call of the operator as plain pointers and numbers. C++17, because nvcc compiles it too.
#pragma once

#include <cstdint>

#include "kernels/common/feature_map.h"

namespace saccade::kernels {

// Kinds of the map G: the paper's equations 7 to 12.
enum class ExpattKind {
  kConstant,
  kLinear,
  kCosine,
  kGaussian,
  kExponentialEuclidean,
  kExponentialManhattan
};

// Returns true if G is the product of a function of the row distance and the same function of the column
// distance.
inline bool IsSeparable(ExpattKind kind) {
  return kind == ExpattKind::kGaussian || kind == ExpattKind::kExponentialManhattan;
}

// Returns true if the map depends on sigma.
inline bool HasSigma(ExpattKind kind) {
  return kind == ExpattKind::kGaussian || kind == ExpattKind::kExponentialEuclidean ||
         kind == ExpattKind::kExponentialManhattan;
}

// out = after (P (before x)) + bias, where P is the normalised map over positions, and before and after are
// matrices over channels. Weights are contiguous and of the accumulation type.
struct ExpattProblem {
  ExpattKind kind = ExpattKind::kConstant;
  int64_t batch = 0;
  int64_t channels = 0;      // of x
  int64_t map_channels = 0;  // channels that the map is applied to
  int64_t out_channels = 0;
  Dtype dtype = Dtype::kFloat32;  // of x and out
  Extent extent;
  FeatureMap x;
  OutputMap out;

  const void* before = nullptr;  // [map_channels, channels], or null for the identity
  const void* after = nullptr;   // [out_channels, map_channels], or null for the identity
  const void* bias = nullptr;    // [out_channels] or null

  double sigma = 1;  // used if device_sigma is null
  // Sigma in device memory, which the host cannot read; float32 or x's type.
  const void* device_sigma = nullptr;
  Dtype device_sigma_dtype = Dtype::kFloat32;

  // CUDA only: the whole map as LaunchExpattMap() stored it, or null.
  const void* map = nullptr;
};

}  // namespace saccade::kernels
