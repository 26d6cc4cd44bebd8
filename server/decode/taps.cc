#include "server/decode/taps.h"

#include <algorithm>
#include <cmath>

namespace saccade::server {
namespace {

// Keys' cubic with a = -0.5, as in Pillow and in torchvision's antialiased bicubic scaling.
double Cubic(double distance) {
  constexpr double kA = -0.5;
  const double x = std::abs(distance);
  if (x < 1) return ((kA + 2) * x - (kA + 3)) * x * x + 1;
  if (x < 2) return ((x - 5) * x + 8) * x * kA - 4 * kA;
  return 0;
}

double Triangle(double distance) { return std::max(0.0, 1.0 - std::abs(distance)); }

// Shrinking widens the filter, so that every source sample contributes. A triangle of width 1 is plain linear
// interpolation.
double StretchOf(const Axis& axis) { return axis.antialias ? std::max(axis.scale, 1.0) : 1.0; }

// The position of output sample `i` in the source.
double CentreOfSample(const Axis& axis, int64_t i) { return (static_cast<double>(i) + 0.5) * axis.scale; }

// The window of output sample `i`, without the index of its weights.
Taps::Window WindowOf(const Axis& axis, int64_t source, int64_t i) {
  if (i < 0 || i >= axis.resized) return {.first = i < 0 ? 0 : source};
  const double centre = CentreOfSample(axis, i);
  const double support = axis.cubic ? 2 * StretchOf(axis) : StretchOf(axis);
  // Where rounding would leave the window empty, use the last source sample.
  const int64_t first = std::clamp<int64_t>(static_cast<int64_t>(centre - support + 0.5), 0, source - 1);
  const int64_t end = std::clamp<int64_t>(static_cast<int64_t>(centre + support + 0.5), first + 1, source);
  return {.first = first, .count = end - first};
}

size_t CountWeights(const Axis& axis, int64_t source) {
  int64_t count = 0;
  for (int64_t i = axis.offset; i < axis.offset + axis.length; ++i) count += WindowOf(axis, source, i).count;
  return static_cast<size_t>(count);
}

}  // namespace

Taps MakeTaps(const Axis& axis, int64_t source) {
  const double stretch = StretchOf(axis);
  Taps taps;
  taps.windows.reserve(static_cast<size_t>(axis.length));
  // A vector that grows would hold up to three times as much for a while.
  taps.weights.reserve(CountWeights(axis, source));
  for (int64_t i = axis.offset; i < axis.offset + axis.length; ++i) {
    Taps::Window window = WindowOf(axis, source, i);
    window.weights = taps.weights.size();
    const double centre = CentreOfSample(axis, i);
    double sum = 0;
    for (int64_t j = window.first; j < window.first + window.count; ++j) {
      const double distance = (static_cast<double>(j) + 0.5 - centre) / stretch;
      const double weight = axis.cubic ? Cubic(distance) : Triangle(distance);
      taps.weights.push_back(static_cast<float>(weight));
      sum += weight;
    }
    if (window.count > 0 && sum == 0) {
      taps.weights[window.weights] = 1;
      sum = 1;
    }
    for (size_t k = window.weights; k < taps.weights.size(); ++k) taps.weights[k] /= static_cast<float>(sum);
    taps.windows.push_back(window);
  }
  return taps;
}

int64_t TapsBytes(const Axis& axis, int64_t source) {
  return static_cast<int64_t>(CountWeights(axis, source) * sizeof(float)) +
         axis.length * static_cast<int64_t>(sizeof(Taps::Window));
}

}  // namespace saccade::server
