// The one place that turns the client's structs into saccade.v1 messages and back.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/client.h"
#include "saccade/v1/vision.pb.h"

namespace saccade::client {

v1::PredictRequest ToRequest(absl::string_view model, absl::string_view picture,
                             const ClassifyOptions& options);

// INTERNAL if the answer is not of the classification task.
absl::StatusOr<Classification> FromResponse(const v1::PredictResponse& response);

// Without round_trip, which the caller alone knows.
Timings ReadTimings(const v1::PredictResponse& response);

Model FromProto(const v1::Model& model);

// The daemon's side of the same, for tests that stand in for it.
v1::PredictResponse ToResponse(const Classification& classification);
v1::Model ToProto(const Model& model);

}  // namespace saccade::client
