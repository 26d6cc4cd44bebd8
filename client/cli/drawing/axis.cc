#include "client/cli/drawing/axis.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

namespace saccade::client {
namespace {

double StepFor(double range, int count) {
  const double min = range / count;
  const double power = std::pow(10, std::floor(std::log10(min)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= min) return factor * power;
  }
  return 10 * power;
}

}  // namespace

void ForTicks(double min, double max, int count,
              const std::function<void(double at, const std::string& text)>& tick) {
  const double step = StepFor(max - min, count);
  const int digits = std::max(0, static_cast<int>(-std::floor(std::log10(step) + 1e-9)));
  for (double at = std::ceil(min / step) * step; at <= max; at += step) {
    tick(at, absl::StrFormat("%.*f", digits, at));
  }
}

}  // namespace saccade::client
