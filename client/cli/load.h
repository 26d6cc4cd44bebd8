// Sends requests at times that do not depend on the answers, as many users would.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/types.h"

namespace saccade::client {

struct LoadPlan {
  // Requests a second, at random times (a Poisson process); 0 sends the next one when one was answered.
  double rate = 0;
  absl::Duration duration = absl::Seconds(10);
  // How many requests may be under way at once.
  int in_flight = 16;
  // Of the times.
  uint64_t seed = 1;
};

struct LoadSample {
  // When it was due, since the beginning.
  absl::Duration due;
  // From then until the answer: where all connections are busy, users wait too.
  absl::Duration latency;
  // How much of that passed before it was sent.
  absl::Duration held;
  absl::Status status;
  // Of an answer.
  Timings timings = {};
  int batch_size = 0;
};

struct LoadResult {
  // In the order of their due times.
  std::vector<LoadSample> samples;
  // From the beginning to the last answer.
  absl::Duration elapsed;
};

// The times at which requests are due, ascending; none for a rate of 0.
std::vector<absl::Duration> DueTimes(const LoadPlan& plan);

// Asks for request 0, 1, 2, ..., on threads of its own; returns after the last answer. `progress` is called
// on this thread a few times a second, with the share of the time that is over and the answers so far.
LoadResult RunLoad(const LoadPlan& plan, const std::function<absl::StatusOr<AnyAnswer>(size_t request)>& ask,
                   const std::function<void(double done, size_t answers)>& progress);

}  // namespace saccade::client
