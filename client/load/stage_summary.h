// Summary of a load by the stages in which its latency passed.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/load/failures.h"
#include "client/load/latency.h"
#include "client/load/load.h"

namespace saccade::client {

// Latency, or one of the stages that add up to it.
struct LoadStage {
  std::string name;
  std::string description;
  // One per answered call, in the order of the samples.
  std::vector<absl::Duration> times;
  Latency latency = {};
};

struct StageSummary {
  // Number of calls that were sent, and of those that were due and were not (LoadResult::not_sent).
  size_t requests = 0;
  size_t not_sent = 0;
  size_t answers = 0;
  absl::Duration elapsed;
  // Answered calls per second.
  double per_second = 0;
  FailureCounts failures;
  // Sum of `failures`.
  size_t failed = 0;
  // The first is the whole latency, from when a call was due to its response; then the stages.
  std::vector<LoadStage> stages;
  // Number of responses by batch size.
  std::map<int, size_t> batch_sizes;
  double mean_batch_size = 0;
  // Number of calls sent more than a millisecond after they were due: because too many were in flight, and
  // because this program was not woken in time.
  size_t held = 0;
  size_t woken_late = 0;
};

StageSummary SummariseStages(const LoadResult& result);

}  // namespace saccade::client
