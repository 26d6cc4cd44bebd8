// Calls in the log: associates log lines with calls, and logs calls that failed because of the daemon.
#pragma once

#include <grpcpp/server_context.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/http/http_message.h"
#include "server/logging/log.h"
#include "server/tracing/call_record.h"

namespace saccade::server {

// From the headers x-request-id and traceparent.
LogCall LogCallOf(const grpc::CallbackServerContext& context);
LogCall LogCallOf(const HttpRequest& request);

// What identifies the call in its message, and its record; null if it has none.
struct NamedCall {
  absl::string_view method;
  absl::string_view model = "";
  absl::string_view id = "";
  const CallRecord* record = nullptr;
};

// Logs the call if `status` is INTERNAL, UNKNOWN or DATA_LOSS. Clients' errors and rejections are only
// counted in the metrics. At most ten lines per second are written; the next one states how many were left
// out. Call while the call's context or request still exists.
void LogFault(const absl::Status& status, const NamedCall& call, const grpc::CallbackServerContext& context);
void LogFault(const absl::Status& status, const NamedCall& call, const HttpRequest& request);

}  // namespace saccade::server
