// absl::Status as gRPC sends it: code, message, google.rpc details, and when to come again.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "server/protocols/retry_jitter.h"

namespace saccade::server {

// For errors that tell nobody when to come again. What the status carries goes out as a google.rpc.Status in
// grpc-status-details-bin: ErrorInfo for a refusal's reason (ShedReason), BadRequest for a wrong field.
grpc::Status ToGrpcStatus(const absl::Status& status);

// The same, and a refusal's hint (RetryAfter), spread by `jitter`: as RetryInfo, and as trailing metadata
// grpc-retry-pushback-ms, which is what gRPC's own retries obey. To be called before `context`'s call is
// finished, once.
grpc::Status ToGrpcStatus(const absl::Status& status, RetryJitter* jitter, grpc::ServerContextBase* context);

}  // namespace saccade::server
