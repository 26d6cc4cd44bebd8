// What a list of measurements comes to. Every sample is kept: no histogram rounds anything.
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

// By the nearest rank: the smallest sample that at least that share of all samples does not exceed. All zero
// for no samples.
Latency Summarise(std::vector<absl::Duration> samples);

}  // namespace saccade::client
