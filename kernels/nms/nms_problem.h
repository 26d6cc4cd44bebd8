// One call of the operator as plain pointers and numbers, as the tensor bindings pass it to the CPU and CUDA
// code, which do not depend on LibTorch.
#pragma once

#include <cstdint>

namespace saccade::kernels {

struct NmsProblem {
  int64_t count = 0;
  const void* boxes = nullptr;      // [count, 4] as (x1, y1, x2, y2)
  const void* scores = nullptr;     // [count]
  const int64_t* labels = nullptr;  // [count] or null
  double iou_threshold = 0;

  int64_t* out = nullptr;  // [out_size]: indices by descending score, then -1
  int64_t out_size = 0;
  int64_t* out_count = nullptr;
};

// Returns the largest number of type A that is not above the threshold: a number of type A is above the
// result exactly if it is above `threshold`.
template <typename A>
A RoundedDown(double threshold) {
  const auto nearest = static_cast<A>(threshold);
  if (!(static_cast<double>(nearest) > threshold)) return nearest;
  // One step towards minus infinity.
  return -__builtin_nextafterf(static_cast<float>(-nearest), __builtin_inff());
}
template <>
inline double RoundedDown<double>(double threshold) {
  return threshold;
}

}  // namespace saccade::kernels
