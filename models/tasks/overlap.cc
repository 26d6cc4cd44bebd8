#include "models/tasks/overlap.h"

#include <algorithm>

namespace saccade::models {
namespace {

double Shared(float a_start, float a_end, float b_start, float b_end) {
  return std::max(0.0, static_cast<double>(std::min(a_end, b_end)) - std::max(a_start, b_start));
}

double Ratio(double both, double either) { return either > 0 ? both / either : 0; }

double Area(const Detection& box) {
  return static_cast<double>(box.x_max - box.x_min) * static_cast<double>(box.y_max - box.y_min);
}

}  // namespace

double BoxIou(const Detection& a, const Detection& b) {
  const double both = Shared(a.x_min, a.x_max, b.x_min, b.x_max) * Shared(a.y_min, a.y_max, b.y_min, b.y_max);
  return Ratio(both, Area(a) + Area(b) - both);
}

double SegmentIou(const Action& a, const Action& b) {
  const double both = Shared(a.start, a.end, b.start, b.end);
  return Ratio(both, static_cast<double>(a.end - a.start) + static_cast<double>(b.end - b.start) - both);
}

}  // namespace saccade::models
