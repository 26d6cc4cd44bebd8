// Converts saccade.v1 messages to protobuf's JSON: bytes in base64, names as in the .proto file.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "saccade/v1/vision.pb.h"

namespace saccade::server {

// INVALID_ARGUMENT says where the text is not a PredictRequest. Names may also be in camelCase.
absl::StatusOr<v1::PredictRequest> PredictRequestFromJson(absl::string_view text);

// Includes fields without presence even if they have their default values.
absl::StatusOr<std::string> ToProtobufJson(const google::protobuf::Message& message);

}  // namespace saccade::server
