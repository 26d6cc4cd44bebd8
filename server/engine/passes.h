// Runs a batch of shares and ends them, for any kind of engine.
#pragma once

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "server/core/clock.h"
#include "server/engine/call_share.h"
#include "server/engine/pass_end.h"
#include "server/metrics/metrics.h"

namespace saccade::server {

// Runs one forward pass over all shares and returns each one's answer, in their order.
using RunPass = std::function<absl::StatusOr<std::vector<ShareAnswer>>(const Shares&)>;

// Ends every share, except those in PassEnd::failed. If the pass fails, each share is computed alone, so that
// only the bad one fails; if memory was insufficient, the batch is split in halves; if the device is lost,
// nothing is computed any more. Shares that fail are ended if others could be computed, because the instance
// works then; and at once if their input is wrong (INVALID_ARGUMENT) or too large for the memory.
PassEnd ComputeShares(Shares shares, Clock* clock, ModelMetrics* metrics, const RunPass& run);

}  // namespace saccade::server
