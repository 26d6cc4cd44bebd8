// How a batch of shares becomes answers, whatever computes it.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "server/core/clock.h"
#include "server/metrics/metrics.h"
#include "server/pipeline/call_share.h"
#include "server/pipeline/pass_end.h"

namespace saccade::server {

using Shares = std::vector<std::unique_ptr<CallShare>>;

// One forward pass over all of them, and what each gets of it, in their order.
using RunPass = std::function<absl::StatusOr<std::vector<ShareAnswer>>(const Shares&)>;

// REQUIRES: every task is a CallShare.
Shares SharesOf(std::vector<std::unique_ptr<BatchTask>> batch);

// Ends every share. If the pass fails, each is computed alone, so that a bad one fails alone; if memory did
// not suffice, half of them at once; if the device is lost, nothing more is tried.
PassEnd ComputeShares(Shares shares, Clock* clock, ModelMetrics* metrics, const RunPass& run);

}  // namespace saccade::server
