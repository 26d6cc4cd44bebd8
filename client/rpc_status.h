// gRPC's statuses as Abseil's. Kept apart from status.h, whose readers need no gRPC header.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace saccade::client {

// Same code, same message; details and the retry hint go along as payloads.
absl::Status FromRpcStatus(const grpc::Status& status, const grpc::ClientContext& context);

}  // namespace saccade::client
