// Statistics of a model since the daemon loaded it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/time/time.h"

namespace saccade::client {

// Number of events and their total duration.
struct Spent {
  int64_t count = 0;
  absl::Duration time = {};

  // Zero if there was no event.
  absl::Duration Mean() const { return count > 0 ? time / count : absl::ZeroDuration(); }
};

// Counters only grow; compute rates as differences of two responses. Requests in flight and the distribution
// of latencies are available over HTTP only (GET /v1/load).
struct ModelStatistics {
  std::string model;
  int64_t version = 0;
  // Whole requests, from arrival to end.
  Spent answered = {};
  Spent failed = {};
  // Stages of the answered requests.
  Spent decode = {};
  Spent queue = {};
  Spent infer = {};
  Spent encode = {};
  int64_t pictures = 0;
  // Number of forward passes, and their durations by the number of pictures in the batch.
  int64_t passes = 0;
  std::map<int64_t, Spent> passes_by_batch_size = {};

  // Mean number of pictures per forward pass; 0 before the first.
  double MeanBatchSize() const {
    return passes > 0 ? static_cast<double>(pictures) / static_cast<double>(passes) : 0;
  }
};

}  // namespace saccade::client
