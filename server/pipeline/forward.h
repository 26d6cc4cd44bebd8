// The forward pass of a batch: where calls become tensors and exceptions become answers.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "models/model.h"
#include "server/batching/batch_task.h"
#include "server/core/byte_pieces.h"
#include "server/core/clock.h"
#include "server/metrics/metrics.h"
#include "server/pipeline/pass_end.h"

namespace saccade::server {

// Runs `model` over normalised items of one bucket, each with its placement (server/pipeline/item.h). Items
// that lie in memory as the network takes them, one after the other, are not copied, others once. Throws
// nothing: what the model throws is what PassFailure makes of it. REQUIRES: at least one.
// `progress` as models::Batch has it.
absl::StatusOr<std::vector<models::TaskResult>> Forward(
    const models::Model& model, const std::vector<BytePieces>& items,
    std::vector<models::Placement> placements,
    std::function<bool(size_t item, double done)> progress = nullptr);

// Ends every share of the batch, as ComputeShares does. `advanced` is called whenever a long pass has come
// further. REQUIRES: every task is a CallShare, all of one bucket.
PassEnd ComputeBatch(const models::Model& model, std::vector<std::unique_ptr<BatchTask>> batch, Clock* clock,
                     ModelMetrics* metrics, const std::function<void()>& advanced);

}  // namespace saccade::server
