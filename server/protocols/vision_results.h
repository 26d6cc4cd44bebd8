// What each task's result looks like in saccade.v1.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "models/description.h"
#include "models/tasks/result.h"
#include "saccade/v1/vision.pb.h"

namespace saccade::server {

// Sets the answer's result, as `request`'s options want it. The error is the encoder's.
// REQUIRES: `result` is of the model's task and no Failure, and the options fit it.
absl::Status SetResult(const models::TaskResult& result, const models::Description& model,
                       const v1::PredictRequest& request, v1::PredictResponse* message);

// RESOURCE_EXHAUSTED, with what to ask for instead, if the answer takes more than `most` bytes.
absl::Status CheckSize(const v1::PredictResponse& message, int64_t most);

}  // namespace saccade::server
