// Converts absl::Status to the end of a gRPC call: code, message, google.rpc details, and the retry hint.
#pragma once

#include "absl/status/status.h"
#include "server/grpc/call.h"
#include "server/protocols/retry_jitter.h"

namespace saccade::server {

// The payloads of `status` are sent as a google.rpc.Status in grpc-status-details-bin: ErrorInfo for a
// rejection's reason (ShedReason), BadRequest for an invalid field. A rejection's retry hint (RetryAfter) is
// spread by `jitter` and sent as RetryInfo, and as the trailer grpc-retry-pushback-ms, which gRPC's own
// retries follow. Without `jitter`, the hint is not sent.
CallEnd ToCallEnd(const absl::Status& status, RetryJitter* jitter = nullptr);

}  // namespace saccade::server
