// What a load came to.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/bench/latency.h"
#include "client/cli/load.h"

namespace saccade::client {

// Where an answer's time went; they add up to its latency.
struct LoadStage {
  std::string name;
  std::string what;
  // Of all answers, in the order of the samples.
  std::vector<absl::Duration> times;
  Latency latency = {};
};

struct LoadSummary {
  size_t requests = 0;
  size_t answers = 0;
  absl::Duration elapsed;
  // Of answers.
  double per_second = 0;
  // By canonical code's name, with the first one's message.
  std::map<std::string, std::pair<size_t, std::string>> failures;
  // From when an answer's request was due to the answer; first, then the stages.
  std::vector<LoadStage> stages;
  // How many answers came in a batch of so many.
  std::map<int, size_t> batch_sizes;
  double mean_batch_size = 0;
  // Requests that were sent more than a millisecond after they were due, as all before were still under way.
  size_t held = 0;
};

LoadSummary SummariseLoad(const LoadResult& result);

}  // namespace saccade::client
