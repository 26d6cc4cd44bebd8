// One call of the operator as plain pointers and numbers. C++17, as nvcc reads it too.
#pragma once

#include <cstdint>

#include "kernels/common/feature_map.h"

namespace saccade::kernels {

// Of the map G; the paper's equations 7 to 12.
enum class ExpattKind {
  kConstant,
  kLinear,
  kCosine,
  kGaussian,
  kExponentialEuclidean,
  kExponentialManhattan
};

// G is then a product of a function of the rows' distance and the same of the columns'.
inline bool IsSeparable(ExpattKind kind) {
  return kind == ExpattKind::kGaussian || kind == ExpattKind::kExponentialManhattan;
}

// out = after (P (before x)) + bias, P being the normalised map over positions, before and after matrices
// over channels. Weights are of the type that sums are kept in, contiguous.
struct ExpattProblem {
  ExpattKind kind = ExpattKind::kConstant;
  int64_t batch = 0;
  int64_t channels = 0;      // of x
  int64_t map_channels = 0;  // of what the map is applied to
  int64_t out_channels = 0;
  Dtype dtype = Dtype::kFloat32;  // of x and out
  Extent extent;
  FeatureMap x;
  OutputMap out;

  const void* before = nullptr;  // [map_channels, channels], or null where those are one
  const void* after = nullptr;   // [out_channels, map_channels], or null where those are one
  const void* bias = nullptr;    // [out_channels] or null

  double sigma = 1;  // where the host knows it
  // Where it does not: on the device, of float32, or of x's type.
  const void* device_sigma = nullptr;
  Dtype device_sigma_dtype = Dtype::kFloat32;
};

}  // namespace saccade::kernels
