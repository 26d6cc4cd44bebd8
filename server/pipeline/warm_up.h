// The passes that a model computes before it is ready: the first ones choose algorithms and allocate, and no
// client should wait for that.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "models/model.h"
#include "server/core/clock.h"
#include "server/repository/model_settings.h"

namespace saccade::server {

struct WarmUpOptions {
  const ModelSettings* settings;
  Clock* clock;
  // How long it may go on beyond the smallest and the largest batch of each bucket.
  absl::Duration at_most;
  // Told what a pass took that was not the first of its kind.
  std::function<void(int64_t bucket, int64_t batch_size, absl::Duration took)> learn;
};

// A batch of so many grey items, to be computed again and again. Not to outlive the model. Null if the
// batch's inputs would be beyond 256 MiB.
std::function<absl::Status()> WarmUpPass(const models::Model& model, const models::Placement& placement,
                                         int64_t size);

// First what the configuration's model_warmup asks for. Then every bucket that models::PlacementsToWarm has:
// a batch of one and a full one, then the preferred sizes and all others as long as there is time. A batch of
// inputs beyond 256 MiB is left out: what it allocates would stay, for a batch that may never come. Blocks,
// computing on this thread. Logs how far it is. The error is the first pass's that failed.
absl::Status WarmUp(const models::Model& model, const WarmUpOptions& options);

}  // namespace saccade::server
