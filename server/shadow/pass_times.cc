#include "server/shadow/pass_times.h"

#include <algorithm>
#include <cmath>

namespace saccade::server {
namespace {

// Minimum quantile in seconds: RatioAt() divides by it, and the clock may measure 0 for a very short pass.
constexpr double kShortest = 1e-9;

double QuantileOf(std::vector<double> seconds, double quantile) {
  const auto rank = static_cast<size_t>(std::ceil(quantile * static_cast<double>(seconds.size())));
  const auto nth =
      seconds.begin() + static_cast<std::ptrdiff_t>(std::clamp<size_t>(rank, 1, seconds.size()) - 1);
  std::nth_element(seconds.begin(), nth, seconds.end());
  return std::max(*nth, kShortest);
}

}  // namespace

void PassTimes::Add(const PassTime& answered, const PassTime& shadow) {
  if (answered_.size() >= kMaxPairs) return;
  if (answered.batch_size == 0 || answered.batch_size != shadow.batch_size) return;
  answered_.push_back(absl::ToDoubleSeconds(answered.took));
  shadow_.push_back(absl::ToDoubleSeconds(shadow.took));
  requests_ += answered.requests;
}

double PassTimes::RatioAt(double quantile) const {
  return QuantileOf(shadow_, quantile) / QuantileOf(answered_, quantile);
}

}  // namespace saccade::server
