// Converts gRPC statuses to Abseil's. Separate from status.h, whose users need no gRPC header.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace saccade::client {

// Keeps code and message; the details and the retry hint become payloads.
absl::Status FromRpcStatus(const grpc::Status& status, const grpc::ClientContext& context);

}  // namespace saccade::client
