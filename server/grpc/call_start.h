// Reads the head of a gRPC request.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/grpc/call.h"
#include "server/grpc/message_encoding.h"
#include "server/http/caller.h"
#include "server/http/exchange.h"

namespace saccade::server {

// What the client sent with the call. INTERNAL for metadata that is not base64 although its name ends with
// "-bin", and for a grpc-timeout that is not a valid timeout.
absl::StatusOr<CallStart> ReadCallStart(const RequestHead& head, const Caller& caller, absl::Time arrival);

// How the call's messages are compressed. UNIMPLEMENTED for an encoding that is not supported.
absl::StatusOr<MessageEncoding> ReadMessageEncoding(const RequestHead& head);

}  // namespace saccade::server
