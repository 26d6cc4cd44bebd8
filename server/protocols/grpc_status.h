// Converts absl::Status to gRPC's: code, message, google.rpc details, and the retry hint.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "server/protocols/retry_jitter.h"

namespace saccade::server {

// For errors without a retry hint. The payloads of `status` are sent as a google.rpc.Status in
// grpc-status-details-bin: ErrorInfo for a rejection's reason (ShedReason), BadRequest for an invalid field.
grpc::Status ToGrpcStatus(const absl::Status& status);

// Also sends a rejection's retry hint (RetryAfter), spread by `jitter`: as RetryInfo, and as trailing
// metadata grpc-retry-pushback-ms, which gRPC's own retries follow. Call once, before `context`'s call is
// finished.
grpc::Status ToGrpcStatus(const absl::Status& status, RetryJitter* jitter, grpc::ServerContextBase* context);

}  // namespace saccade::server
