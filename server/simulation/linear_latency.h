// The time of a pass: L(b) = alpha + beta * b, where b counts items of unit area.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "server/simulation/virtual_time.h"

namespace saccade::server::simulation {

struct LinearLatency {
  Nanos alpha = 5 * kMillisecond;
  Nanos beta = kMillisecond / 4;

  Nanos operator()(double pictures) const { return alpha + (beta * pictures).Whole(); }
};

// A bucket's size. LinearLatency::beta is the time of one item of area 1.
struct Shape {
  double height = 1;
  double width = 1;

  double area() const { return height * width; }
};

// The smallest shape that holds both; mixed items in one batch are padded to it.
inline Shape Hull(const Shape& a, const Shape& b) {
  return {std::max(a.height, b.height), std::max(a.width, b.width)};
}

// `n` buckets of area 1, whose aspect ratios range from 2:1 to 1:2 (height:width).
std::vector<Shape> EqualAreas(int n);

}  // namespace saccade::server::simulation
