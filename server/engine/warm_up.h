// Warm-up: passes that a model computes before it is ready. The first passes choose algorithms and allocate
// memory, for which no client should wait.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "models/api/model.h"
#include "server/core/clock.h"
#include "server/repository/model_settings.h"

namespace saccade::server {

struct WarmUpOptions {
  const ModelSettings* settings;
  Clock* clock;
  // Time limit for batches other than the smallest and the largest of each bucket.
  absl::Duration at_most;
  // Called with the time of a pass. The first pass of a kind is only reported if it was long
  // (kLongWarmUpPass).
  std::function<void(int64_t bucket, int64_t batch_size, absl::Duration took)> learn;
};

// A function that computes a batch of `size` grey items and may be called repeatedly. Null if the inputs of a
// batch of several items exceed 256 MiB. Must not outlive the model.
std::function<absl::Status()> WarmUpPass(const models::Model& model, const models::Placement& placement,
                                         int64_t size);

// Computes the configuration's model_warmup. Then, for every bucket of models::PlacementsToWarm, a batch of
// one and a full one; then the preferred sizes and all others within the time limit. Batches with inputs
// above 256 MiB are left out, because their allocations would remain even if no such batch ever arrives.
// Blocks, and computes on this thread. Logs its progress. Returns the error of the first pass that fails.
absl::Status WarmUp(const models::Model& model, const WarmUpOptions& options);

}  // namespace saccade::server
