// The arrival process of an open loop.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace saccade::client {

// Returns the times, ascending and before `duration`, at which a Poisson process with `rate` arrivals per
// second has an arrival. The same seed gives the same times. REQUIRES: rate > 0.
std::vector<absl::Duration> ArrivalTimes(double rate, absl::Duration duration, uint64_t seed);

}  // namespace saccade::client
