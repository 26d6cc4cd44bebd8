// Percentiles of a list of measurements. Every sample is kept, so nothing is rounded to histogram buckets.
#pragma once

#include <vector>

#include "absl/time/time.h"

namespace saccade::client {

struct Latency {
  absl::Duration p50;
  absl::Duration p90;
  absl::Duration p99;
  absl::Duration mean;
};

// Uses the nearest rank: the smallest sample such that at least that fraction of all samples is not larger.
// All zero for no samples.
Latency Summarise(std::vector<absl::Duration> samples);

}  // namespace saccade::client
