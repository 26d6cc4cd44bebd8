// The entries of the map by distance: the paper's equations 7 to 12.
#pragma once

#include <cmath>

#include "kernels/common/device.h"
#include "kernels/expatt/expatt_problem.h"

namespace saccade::kernels {

__device__ inline float ExpattSigma(const ExpattProblem& p) {
  if (p.device_sigma == nullptr) return static_cast<float>(p.sigma);
  switch (p.device_sigma_dtype) {
    case Dtype::kFloat16:
      return ToFloat(*static_cast<const DeviceHalf*>(p.device_sigma));
    case Dtype::kBFloat16:
      return ToFloat(*static_cast<const DeviceBFloat16*>(p.device_sigma));
    default:
      return *static_cast<const float*>(p.device_sigma);
  }
}

// Returns a factor of a separable G, for distance d on a line of `size`.
__device__ inline float ExpattLineWeight(ExpattKind kind, int d, int size, float sigma) {
  const float part = static_cast<float>(d) / static_cast<float>(size);
  return kind == ExpattKind::kGaussian ? expf(-part * part / (2 * sigma * sigma)) : expf(-part / sigma);
}

// Returns the cosine of pi times `part`. CUDA's cosf would take local memory for its large arguments.
__device__ inline float ExpattCosineOfPi(float part) {
#if defined(__CUDACC__)
  return cospif(part);
#else
  return cosf(3.14159265358979f * part);
#endif
}

// Returns G.
__device__ inline float ExpattWeight(ExpattKind kind, int dy, int dx, int height, int width, float sigma) {
  if (kind == ExpattKind::kGaussian || kind == ExpattKind::kExponentialManhattan) {
    return ExpattLineWeight(kind, dy, height, sigma) * ExpattLineWeight(kind, dx, width, sigma);
  }
  const auto y = static_cast<float>(dy);
  const auto x = static_cast<float>(dx);
  const auto h = static_cast<float>(height);
  const auto w = static_cast<float>(width);
  if (kind == ExpattKind::kExponentialEuclidean) {
    return expf(-sqrtf(x / w * (x / w) + y / h * (y / h)) / sigma);
  }
  const float part = sqrtf((x * x + y * y) / (h * h + w * w));
  return kind == ExpattKind::kLinear ? 1 - part : 0.5f * (1 + ExpattCosineOfPi(part));
}

__device__ inline int ExpattDistance(int a, int b) { return a < b ? b - a : a - b; }

// Returns the value as the kernels for maps of T multiply it.
template <typename T>
__device__ float ExpattRounded(float value) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return value;
  } else {
    T rounded;
    FromFloat(value, &rounded);
    return ToFloat(rounded);
  }
}

}  // namespace saccade::kernels
