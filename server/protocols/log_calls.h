// Calls in the log: whose lines are whose, and a line for each that failed through the daemon's fault.
#pragma once

#include <grpcpp/server_context.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/http/http_message.h"
#include "server/logging/log.h"
#include "server/tracing/call_record.h"

namespace saccade::server {

// By the headers x-request-id and traceparent.
LogCall LogCallOf(const grpc::CallbackServerContext& context);
LogCall LogCallOf(const HttpRequest& request);

// What its message says a call is, and where it is written down; null if nobody wants to know.
struct NamedCall {
  absl::string_view method;
  absl::string_view model = "";
  absl::string_view id = "";
  const CallRecord* record = nullptr;
};

// Nothing but where `status` is INTERNAL, UNKNOWN or DATA_LOSS: what clients got wrong, and what was turned
// away, the metrics count. At most ten lines a second; the next says how many were left out. Call it where
// the call's context or request is still there.
void LogFault(const absl::Status& status, const NamedCall& call, const grpc::CallbackServerContext& context);
void LogFault(const absl::Status& status, const NamedCall& call, const HttpRequest& request);

}  // namespace saccade::server
