// Converts between the client's structs and saccade.v1 messages. No other file does.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cpp/client.h"
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
v1::PredictRequest ToRequest(absl::string_view model, absl::string_view picture, const DepthOptions& options);
v1::PredictRequest ToRequest(absl::string_view model, absl::string_view picture, const EmbedOptions& options);

v1::PredictRequest ToRequest(absl::string_view model, absl::string_view video, const ActionOptions& options);
v1::PredictRequest ToRequest(absl::string_view model, const std::vector<std::string>& frames,
                             double frames_per_second, const ActionOptions& options);
// Returns the message that precedes the volume's bytes.
v1::RestoreHeader ToHeader(absl::string_view model, const VolumeSource& volume,
                           const RestoreOptions& options);

// Converts a response to one of AnyAnswer's types. INTERNAL if the response is of another task. A Restoration
// has only the voxels that are in the message.
template <typename TaskAnswer>
absl::StatusOr<TaskAnswer> FromResponse(const v1::PredictResponse& response);

// Converts a response of any task. A disparity is a DepthMap if `is_depth`, which only the request tells.
absl::StatusOr<AnyAnswer> FromAnyResponse(const v1::PredictResponse& response, bool is_depth);

// Converts the error of one stream item.
absl::Status FromProto(const v1::ItemError& error);

// RESOURCE_EXHAUSTED if the request is larger than `max_message_bytes`.
absl::Status CheckSize(const google::protobuf::MessageLite& request, int64_t max_message_bytes);

// Returns all but round_trip, which only the caller knows.
Timings ReadTimings(const v1::PredictResponse& response);

Model FromProto(const v1::Model& model);

}  // namespace saccade::client
