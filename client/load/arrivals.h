// The arrival process of an open loop.
#pragma once

#include <cstdint>
#include <random>

#include "absl/time/time.h"

namespace saccade::client {

// The times at which a Poisson process has an arrival. They are drawn one by one, so their number takes no
// memory.
class Arrivals {
 public:
  // `rate` is the mean number of arrivals per second. The same seed gives the same times. REQUIRES: rate > 0.
  Arrivals(double rate, uint64_t seed);

  // Returns the time of the next arrival, since the start of the process. Times ascend.
  absl::Duration Next();

 private:
  std::mt19937_64 random_;
  std::exponential_distribution<double> gap_;
  absl::Duration at_;
};

}  // namespace saccade::client
