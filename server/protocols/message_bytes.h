// Protobuf messages from the bytes in which they are received.
#pragma once

#include <google/protobuf/message.h>

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/core/byte_ledger.h"
#include "server/core/byte_pieces.h"

namespace saccade::server {

// Memory that a parsed message may take if it is not charged. Such messages are orders and questions, of
// which the largest contains a model's configuration.
inline constexpr int64_t kMaxUnchargedBytes = int64_t{4} << 20;

// Parses a message without joining its pieces. Returns the charge to `client` for the memory that the message
// takes beyond twice the size of `bytes`; it has to be kept as long as the message. Without `ledger`, nothing
// is charged, and the message may take kMaxUnchargedBytes. INVALID_ARGUMENT, naming the message's type, if
// `bytes` are not one, contain too much of something (message_size.h) or take too much memory; else the
// errors of `ledger`. REQUIRES: `message` is newly constructed.
absl::StatusOr<ByteCharge> ParseMessage(const BytePieces& bytes, google::protobuf::Message* message,
                                        ByteLedger* ledger = nullptr, absl::string_view client = "");

}  // namespace saccade::server
