// Chooses the precision in which a network is computed.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "models/api/target.h"
#include "server/core/clock.h"
#include "server/engine/engine.h"
#include "server/repository/model_settings.h"

namespace saccade::server {

struct PrecisionChoice {
  models::Precision precision = models::Precision::kFloat32;
  // Why, as a part of a sentence, with what was measured.
  std::string reason;
};

// Returns the option `precision`, unless it is auto: then computes the model's samples in float32 and in
// bfloat16 and, if the version has quantized weights, in int8, and chooses the faster of them where the
// processor multiplies it itself, the answers change by at most settings.max_precision_loss in the mean
// (models/tasks/disagreement.h) and the passes are faster; float32 otherwise, and if there are no samples or
// one cannot be read. A processor without int8 leaves quantized weights aside, with a warning in the log.
// Loads the weights twice at a time, and frees both. Blocks, and computes on this thread. Errors are those of
// loading the weights.
absl::StatusOr<PrecisionChoice> ChoosePrecision(const ModelSettings& settings, const EngineOptions& options,
                                                Clock* clock);

}  // namespace saccade::server
