#include "server/simulation/linear_latency.h"

#include <cmath>

namespace saccade::server::simulation {

std::vector<Shape> EqualAreas(int n) {
  std::vector<Shape> shapes;
  for (int i = 0; i < n; ++i) {
    const double height = n == 1 ? 1 : std::pow(2.0, 0.5 - static_cast<double>(i) / (n - 1));
    shapes.push_back({height, 1 / height});
  }
  return shapes;
}

}  // namespace saccade::server::simulation
