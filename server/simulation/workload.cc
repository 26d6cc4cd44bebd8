#include "server/simulation/workload.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace saccade::server::simulation {
namespace {

double Seconds(Nanos span) { return span.count() * 1e-9; }

}  // namespace

Stream::Stream(const StreamOptions& options, uint64_t seed)
    : options_(options), bucket_(options.buckets), size_(options.sizes), gaps_(seed), requests_(~seed) {
  seconds_ = Seconds(options_.from);
  // The first request of an even stream arrives after a part of a gap, so that several streams are not in
  // phase.
  if (options_.cv == 0) seconds_ -= gaps_.Uniform() / RateAt(seconds_);
}

double Stream::RateAt(double seconds) const {
  double rate = options_.rate;
  if (options_.day_factor != 1) {
    const double day = seconds / Seconds(options_.day_length);
    rate *= std::pow(options_.day_factor, std::sin(2 * std::numbers::pi * day));
  }
  if (seconds >= Seconds(options_.step_from) && seconds < Seconds(options_.step_to)) {
    rate *= options_.step_factor;
  }
  return rate;
}

Arrival Stream::Next() {
  if (options_.recorded != nullptr)
    return next_ < options_.recorded->size() ? (*options_.recorded)[next_++] : Arrival{.at = kNever};
  // Rates change slowly compared to the gaps, so the rate at the start of a gap is used for all of it.
  const double gap = options_.cv == 0 ? 1 : gaps_.Gamma(options_.cv);
  seconds_ += gap / RateAt(seconds_);
  Arrival arrival;
  arrival.at = FromSeconds(seconds_);
  arrival.bucket = bucket_(requests_);
  if (options_.clients > 1) {
    arrival.client = static_cast<int>(requests_.Below(options_.clients));
  }
  arrival.client += options_.first_client;
  arrival.size = 1 + size_(requests_);
  if (options_.cancelled > 0 && requests_.Chance(options_.cancelled)) {
    const Nanos patience = options_.deadline == kNever ? kSecond : 2 * options_.deadline;
    arrival.cancel_at =
        arrival.at + Nanos(static_cast<double>(requests_.Below(static_cast<int64_t>(patience.count()))));
  }
  return arrival;
}

void Stream::WaitUntil(Nanos now) { seconds_ = std::max(seconds_, Seconds(now)); }

uint64_t StreamSeed(uint64_t seed, size_t stream) { return seed * 0x9e3779b97f4a7c15 + stream + 1; }

}  // namespace saccade::server::simulation
