// How long a device computes: L(b) = alpha + beta * b, with b counted in pictures of unit area.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "server/simulation/instant.h"

namespace saccade::server::simulation {

struct LatencyModel {
  Instant alpha = 5 * kMillisecond;
  Instant beta = kMillisecond / 4;

  Instant operator()(double pictures) const {
    return alpha + static_cast<Instant>(static_cast<double>(beta) * pictures);
  }
};

// A bucket's size; the latency model's beta is that of an area of 1.
struct Shape {
  double height = 1;
  double width = 1;

  double area() const { return height * width; }
};

// What holds both: mixed pictures in one batch are padded to it.
inline Shape Hull(const Shape& a, const Shape& b) {
  return {std::max(a.height, b.height), std::max(a.width, b.width)};
}

// `n` buckets of area 1, from twice as high as wide to the contrary, as are pictures of all aspect ratios.
std::vector<Shape> EqualAreas(int n);

}  // namespace saccade::server::simulation
