// Converts saccade.v1 messages to protobuf's JSON: bytes in base64, names as in the .proto file.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "saccade/v1/vision.pb.h"
#include "server/core/byte_ledger.h"

namespace saccade::server {

// A text that came compressed may have as many values as bytes of it were sent, and in any case so many.
// Otherwise few bytes would take long: a value without content takes the parser about a microsecond.
inline constexpr size_t kMaxCompressedJsonValues = 256;

// Parses `text`, in which names may also be in camelCase. Returns the charge to `client` for the memory that
// the message takes; it has to be kept as long as the message. What parsing takes beside that is charged
// meanwhile. Without `ledger`, nothing is charged. `compressed_bytes` is the size of the text as it was sent,
// if it was compressed. INVALID_ARGUMENT says where the text is not a PredictRequest, or that it has too many
// values (kMaxJsonValues, kMaxCompressedJsonValues); else the errors of `ledger`. REQUIRES: `request` is
// newly constructed.
absl::StatusOr<ByteCharge> PredictRequestFromJson(absl::string_view text, v1::PredictRequest* request,
                                                  ByteLedger* ledger = nullptr, absl::string_view client = "",
                                                  std::optional<size_t> compressed_bytes = std::nullopt);

// Includes fields without presence even if they have their default values.
absl::StatusOr<std::string> ToProtobufJson(const google::protobuf::Message& message);

}  // namespace saccade::server
