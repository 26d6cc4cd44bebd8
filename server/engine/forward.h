// The forward pass of a batch: converts calls to tensors, and exceptions to errors.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "models/api/model.h"
#include "server/core/byte_pieces.h"
#include "server/core/clock.h"
#include "server/engine/call_share.h"
#include "server/engine/pass_end.h"
#include "server/metrics/metrics.h"

namespace saccade::server {

// Runs `model` over normalised items of one bucket, each with its placement (server/engine/item.h). Items
// that are contiguous in memory in the network's layout are not copied unless the model is on a GPU, others
// are copied once. Exceptions of the model become the errors of PassFailure. REQUIRES: at least one item.
// `progress` is models::Batch::progress.
absl::StatusOr<std::vector<models::TaskResult>> Forward(
    const models::Model& model, const std::vector<BytePieces>& items,
    std::vector<models::Placement> placements,
    std::function<bool(size_t item, double done)> progress = nullptr);

// Ends shares of the batch like ComputeShares. `advanced` is called when a long pass makes progress.
// REQUIRES: all shares are of one bucket.
PassEnd ComputeBatch(const models::Model& model, Shares batch, Clock* clock, ModelMetrics* metrics,
                     const std::function<void()>& advanced);

}  // namespace saccade::server
