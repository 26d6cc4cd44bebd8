#include "client/load/arrivals.h"

#include <random>

namespace saccade::client {

std::vector<absl::Duration> ArrivalTimes(double rate, absl::Duration duration, uint64_t seed) {
  std::vector<absl::Duration> times;
  std::mt19937_64 random(seed);
  std::exponential_distribution<double> gap(rate);
  for (absl::Duration at = absl::Seconds(gap(random)); at < duration; at += absl::Seconds(gap(random))) {
    times.push_back(at);
  }
  return times;
}

}  // namespace saccade::client
