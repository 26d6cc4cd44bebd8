#include "client/load/arrivals.h"

namespace saccade::client {

Arrivals::Arrivals(double rate, uint64_t seed) : random_(seed), gap_(rate) {}

absl::Duration Arrivals::Next() {
  at_ += absl::Seconds(gap_(random_));
  return at_;
}

}  // namespace saccade::client
