// Summary of a load.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/bench/latency.h"
#include "client/cli/load.h"

namespace saccade::client {

// Latency, or one of the stages that add up to it.
struct LoadStage {
  std::string name;
  std::string what;
  // One per answered request, in the order of the samples.
  std::vector<absl::Duration> times;
  Latency latency = {};
};

struct LoadSummary {
  size_t requests = 0;
  size_t answers = 0;
  absl::Duration elapsed;
  // Answered requests per second.
  double per_second = 0;
  // By the name of the canonical code: count and first message.
  std::map<std::string, std::pair<size_t, std::string>> failures;
  // The first is the whole latency, from when a request was due to its response; then the stages.
  std::vector<LoadStage> stages;
  // Number of responses by batch size.
  std::map<int, size_t> batch_sizes;
  double mean_batch_size = 0;
  // Requests sent more than a millisecond after they were due, because all connections were busy.
  size_t held = 0;
};

LoadSummary SummariseLoad(const LoadResult& result);

}  // namespace saccade::client
