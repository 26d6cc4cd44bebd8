// The warm-up of a network: passes that are computed before it is ready. The first passes choose algorithms
// and allocate memory, for which no client should wait.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "models/api/model.h"
#include "server/engine/engine.h"
#include "server/repository/model_settings.h"

namespace saccade::server {

// A function that computes a batch of `size` grey items and may be called repeatedly. Null if the inputs of a
// batch of several items exceed 256 MiB. Must not outlive the model.
std::function<absl::Status()> WarmUpPass(const models::Model& model, const models::Placement& placement,
                                         int64_t size);

// Computes the configuration's model_warmup. Then, for every bucket of models::PlacementsToWarm, a batch of
// one and a full one; then the preferred sizes and all others within the time limit. Batches with inputs
// above 256 MiB are left out, because their allocations would remain even if no such batch ever arrives.
// Blocks, and computes on this thread. Logs its progress. Returns the error of the first pass that fails.
absl::Status WarmUpNetwork(const models::Model& model, const ModelSettings& settings,
                           const Engine::WarmUpOptions& options);

}  // namespace saccade::server
