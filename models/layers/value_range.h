// Which numbers a layer's maps hold, and the grid of 8 bits on which they are best written.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "models/layers/quantized_map.h"

namespace saccade::models {

// How a grid's ends are chosen. Numbers beyond them are limited to them.
enum class RangeMethod {
  kMinMax,      // the smallest and the largest number seen
  kPercentile,  // at most one of 10,000 numbers lies beyond each end
  kMse          // with the smallest mean of the squared errors, from rounding and from limiting
};

// Returns "min-max", "percentile" or "mse".
const char* RangeMethodName(RangeMethod method);

// A histogram in two passes over the same maps: the first finds the ends, the second counts. Not thread-safe.
class ValueRange {
 public:
  // Throws std::runtime_error if x holds a value that is not finite.
  void Widen(const at::Tensor& x);
  void Count(const at::Tensor& x);

  // Whether Widen() has seen a number.
  bool seen() const { return seen_; }
  double low() const { return low_; }
  double high() const { return high_; }

  // REQUIRES: Count() has seen the maps that Widen() saw, unless the method is kMinMax.
  Grid Best(RangeMethod method) const;

 private:
  double Error(const Grid& grid) const;

  bool seen_ = false;
  // Both ends include 0, which has to be exact: padding is 0.
  double low_ = 0, high_ = 0;
  std::vector<double> counts_;
};

}  // namespace saccade::models
