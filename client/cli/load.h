// An open-loop load: sends requests at times that do not depend on the responses, as many users would.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/types.h"

namespace saccade::client {

struct LoadPlan {
  // Requests per second, at random times (a Poisson process). 0 is a closed loop: each thread sends its next
  // request when the previous one was answered.
  double rate = 0;
  absl::Duration duration = absl::Seconds(10);
  // Maximum number of requests in flight.
  int in_flight = 16;
  // Seed of the random times.
  uint64_t seed = 1;
};

struct LoadSample {
  // When the request was due, since the start.
  absl::Duration due;
  // From when the request was due until its response, including the wait for a free connection.
  absl::Duration latency;
  // Part of the latency that passed before the request was sent.
  absl::Duration held;
  absl::Status status;
  // Set if the request was answered.
  Timings timings = {};
  int batch_size = 0;
};

struct LoadResult {
  // Sorted by due time.
  std::vector<LoadSample> samples;
  // From the start to the last response.
  absl::Duration elapsed;
};

// Returns the times at which requests are due, ascending; empty for a rate of 0.
std::vector<absl::Duration> DueTimes(const LoadPlan& plan);

// The time that a load is sent by; tests replace it.
struct LoadClock {
  std::function<absl::Time()> now = &absl::Now;
  // Blocks until `now` has reached the time.
  std::function<void(absl::Time)> sleep_until = [](absl::Time due) { absl::SleepFor(due - absl::Now()); };
};

// Calls `ask` for requests 0, 1, 2, ... on threads of its own; returns after the last response. Calls
// `progress` on the calling thread several times per second, with the elapsed fraction of the duration and
// the number of requests finished.
LoadResult RunLoad(const LoadPlan& plan, const std::function<absl::StatusOr<AnyAnswer>(size_t request)>& ask,
                   const std::function<void(double done, size_t answers)>& progress,
                   const LoadClock& clock = {});

}  // namespace saccade::client
