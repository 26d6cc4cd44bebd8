// saccade.v1 messages in protobuf's JSON: bytes in base64, names as in the .proto file.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "saccade/v1/vision.pb.h"

namespace saccade::server {

// INVALID_ARGUMENT says where the text is no PredictRequest. Names may also be in camelCase.
absl::StatusOr<v1::PredictRequest> PredictRequestFromJson(absl::string_view text);

// With every field that has no presence, so that zeros are there to be read.
absl::StatusOr<std::string> ToProtobufJson(const google::protobuf::Message& message);

}  // namespace saccade::server
