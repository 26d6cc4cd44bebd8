#include "server/admission/drain_rate.h"

#include <algorithm>
#include <cmath>

namespace saccade::server {
namespace {

// Time constant of the decay: long compared with a forward pass, whose requests all end at once, and short
// compared with a change of load.
constexpr double kRememberSeconds = 5;

}  // namespace

void DrainRate::Advance(absl::Time now, bool busy) {
  const absl::Time last = last_;
  last_ = std::max(last_, now);
  if (!busy || now <= last || last == absl::InfinitePast()) return;
  const double kept = std::exp(-absl::ToDoubleSeconds(now - last) / kRememberSeconds);
  ended_ *= kept;
  busy_seconds_ = busy_seconds_ * kept + kRememberSeconds * (1 - kept);
}

absl::Duration DrainRate::TimeFor(int64_t requests) const {
  if (ended_ == 0) return kUnknown;
  const double seconds = static_cast<double>(requests) * busy_seconds_ / ended_;
  return std::clamp(absl::Seconds(seconds), kMin, kMax);
}

}  // namespace saccade::server
