// The one place that turns the client's structs into saccade.v1 messages, and those it gets into structs.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/client.h"
#include "saccade/v1/vision.pb.h"

namespace saccade::client {

v1::PredictRequest ToRequest(absl::string_view model, absl::string_view picture,
                             const ClassifyOptions& options);
v1::PredictRequest ToRequest(absl::string_view model, absl::string_view picture,
                             const DetectOptions& options);
v1::PredictRequest ToRequest(absl::string_view model, absl::string_view picture,
                             const SegmentOptions& options);
v1::PredictRequest ToRequest(absl::string_view model, absl::string_view left, absl::string_view right,
                             const StereoOptions& options);

v1::PredictRequest ToRequest(absl::string_view model, absl::string_view video, const ActionOptions& options);
v1::PredictRequest ToRequest(absl::string_view model, const std::vector<std::string>& frames,
                             double frames_per_second, const ActionOptions& options);
// What goes before the volume's bytes.
v1::RestoreHeader ToHeader(absl::string_view model, const VolumeSource& volume,
                           const RestoreOptions& options);

// One of AnyAnswer's. INTERNAL if the answer is of another task. A Restoration has only the voxels that
// are in the message.
template <typename TaskAnswer>
absl::StatusOr<TaskAnswer> FromResponse(const v1::PredictResponse& response);

// Whichever it is.
absl::StatusOr<AnyAnswer> FromAnyResponse(const v1::PredictResponse& response);

// Of one item of a stream.
absl::Status FromProto(const v1::ItemError& error);

// RESOURCE_EXHAUSTED if it takes more than a message may.
absl::Status CheckSize(const google::protobuf::MessageLite& request, int64_t max_message_bytes);

// Without round_trip, which the caller alone knows.
Timings ReadTimings(const v1::PredictResponse& response);

Model FromProto(const v1::Model& model);

}  // namespace saccade::client
