// Finds out how many instances of a model, with how many threads each, suit what it is optimized for.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "server/catalog/thread_trial.h"
#include "server/core/clock.h"
#include "server/repository/model_settings.h"

namespace saccade::server {

struct InstanceSplit {
  int instances = 1;
  // Threads of one pass of an instance.
  int threads = 1;
};

// Loads the network for so many instances, and for the number of threads that the calling thread currently
// uses. The passes that it makes may run on several threads at the same time.
using LoadForSplit = std::function<absl::StatusOr<PassMaker>(int instances)>;

struct InstanceTrial {
  Optimize goal = Optimize::kLatency;
  // Cores that all instances together may use. At least 1.
  int cores = 1;
  // The number of instances if it is configured; 0 has it chosen too.
  int instances = 0;
  int64_t max_batch_size = 1;
  Clock* clock = nullptr;
};

// Tries all cores, a half of them, a quarter and so on for the threads of an instance, however long its
// passes take. For kLatency, returns the number with which a pass over one item takes the least time, for one
// instance. For kThroughput, as many instances as fit onto the cores compute full batches at the same time,
// and what computes the most items in a second is returned. If passes fail or cannot be made, returns all
// cores divided by the instances. The network is loaded for the result on return. Errors are those of `load`.
// Blocks for about half a second for each number tried, or two passes.
absl::StatusOr<InstanceSplit> LoadForGoal(const LoadForSplit& load, const InstanceTrial& trial);

}  // namespace saccade::server
