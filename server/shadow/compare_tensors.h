// Compares two tensors.
#pragma once

#include <limits>

#include "server/core/tensor.h"

namespace saccade::server {

// The difference of what cannot be compared.
inline constexpr double kIncomparable = std::numeric_limits<double>::infinity();

struct TensorDifference {
  // Bit for bit, with the same name, type and shape.
  bool equal = false;
  // The largest difference of an element, as a share of the largest absolute value of `one`. Infinite if
  // types or shapes differ, if a difference is not finite, or if texts or booleans differ.
  double difference = 0;
};

TensorDifference CompareTensors(const Tensor& one, const Tensor& other);

}  // namespace saccade::server
