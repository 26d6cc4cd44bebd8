// A copy of what a model's queue has learned of its passes in one bucket.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace saccade::server {

struct LearnedTiming {
  int64_t bucket = 0;
  // Number of items in passes that have ended, without those of the warm-up.
  int64_t computed = 0;
  // Mean time of a pass by its size: the first element is that of size 1.
  std::vector<absl::Duration> mean;
  // The smallest and the largest size of a measured pass.
  int64_t smallest = 0;
  int64_t largest = 0;
  // Standard deviation of a pass's time relative to the mean of its size.
  double deviation = 0;
};

}  // namespace saccade::server
