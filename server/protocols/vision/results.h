// Converts the result of each task to saccade.v1.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "models/tasks/result.h"
#include "saccade/v1/vision.pb.h"
#include "server/core/request.h"

namespace saccade::server {

// Sets the answer's result, that of the first item, in the form of `request`'s options. Errors are those of
// the encoder and of `response.still_wanted`. REQUIRES: the options fit the model's task.
absl::Status SetResult(const Response& response, const v1::PredictRequest& request,
                       v1::PredictResponse* message);

// Sets a restoration's facts without its voxels, which have the type `type`.
void SetRestoration(const models::Restoration& result, VoxelType type, v1::Restoration* message);

// The type in which the client wants the voxels; by default the one it sent.
VoxelType WantedType(const v1::RestorationOptions& options, const Response& response);

// Upper bound of the size of an answer's Timings: five durations and their tags.
constexpr int64_t kMaxTimings = 128;

// RESOURCE_EXHAUSTED, with advice for a smaller answer, if the answer has more than `max` bytes together
// with `around`, the size of the message around it.
absl::Status CheckSize(const v1::PredictResponse& message, int64_t max, int64_t around = 0);

// The same for an answer with detections of `bytes` bytes, the message around it included.
absl::Status CheckDetectionsSize(int64_t bytes, int64_t max);

}  // namespace saccade::server
