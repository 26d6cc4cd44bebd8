// What each task's result looks like in saccade.v1.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "models/tasks/result.h"
#include "saccade/v1/vision.pb.h"
#include "server/core/request.h"

namespace saccade::server {

// Sets the answer's result, that of the first item, as `request`'s options want it. The error is the
// encoder's. REQUIRES: the options fit the model's task.
absl::Status SetResult(const Response& response, const v1::PredictRequest& request,
                       v1::PredictResponse* message);

// A restoration's facts, without its voxels; `type` is theirs.
void SetRestoration(const models::Restoration& result, VoxelType type, v1::Restoration* message);

// The type that the client wants its voxels in: by default the one that it sent.
VoxelType WantedType(const v1::RestorationOptions& options, const Response& response);

// RESOURCE_EXHAUSTED, with what to ask for instead, if the answer takes more than `most` bytes, with
// the `around` that it is sent in.
absl::Status CheckSize(const v1::PredictResponse& message, int64_t most, int64_t around = 0);

}  // namespace saccade::server
