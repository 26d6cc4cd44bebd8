// Measures how many instances of a model, with how many threads each, are best for the goal in its
// configuration.
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

// Tries passes with all cores (divided by trial.instances, if that is set), a half of them, a quarter and so
// on as the threads of an instance, until a number is much worse than the best one, or a pass fails or cannot
// be made. Returns the best number that was measured, or the first one if none was. For kLatency, the best is
// the one with the shortest pass over one item, with one instance unless trial.instances is set. For
// kThroughput, as many instances as fit onto the cores compute full batches at the same time, and the best
// computes the most items per second. The network is loaded for the result on return. Errors are those of
// `load`. Blocks for about half a second for each number tried, or two passes.
absl::StatusOr<InstanceSplit> LoadForGoal(const LoadForSplit& load, const InstanceTrial& trial);

}  // namespace saccade::server
