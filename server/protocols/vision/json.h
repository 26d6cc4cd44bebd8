// Converts saccade.v1 messages to protobuf's JSON: bytes in base64, names as in the .proto file.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "saccade/v1/vision.pb.h"
#include "server/core/byte_ledger.h"

namespace saccade::server {

// Parses `text`, in which names may also be in camelCase. Returns the charge to `client` for the memory that
// the message takes; it has to be kept as long as the message. What parsing takes beside that is charged
// meanwhile. Without `ledger`, nothing is charged. INVALID_ARGUMENT says where the text is not a
// PredictRequest, or that it has too many values (kMaxJsonValues); else the errors of `ledger`. REQUIRES:
// `request` is newly constructed.
absl::StatusOr<ByteCharge> PredictRequestFromJson(absl::string_view text, v1::PredictRequest* request,
                                                  ByteLedger* ledger = nullptr,
                                                  absl::string_view client = "");

// Includes fields without presence even if they have their default values.
absl::StatusOr<std::string> ToProtobufJson(const google::protobuf::Message& message);

}  // namespace saccade::server
