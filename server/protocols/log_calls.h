// Calls in the log: associates log lines with calls, and logs calls that failed because of the daemon.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/http/http_headers.h"
#include "server/logging/log.h"
#include "server/tracing/call_record.h"

namespace saccade::server {

// From the headers, or gRPC metadata, x-request-id and traceparent.
LogCall LogCallOf(const HttpHeaders& headers);

// What identifies the call in its message, and its record; null if it has none.
struct NamedCall {
  absl::string_view method;
  absl::string_view model = "";
  absl::string_view id = "";
  const CallRecord* record = nullptr;
};

// Logs the call if `status` is INTERNAL, UNKNOWN or DATA_LOSS. Clients' errors and rejections are only
// counted in the metrics. At most ten lines per second are written; the next one states how many were left
// out.
void LogFault(const absl::Status& status, const NamedCall& call, const HttpHeaders& headers);

}  // namespace saccade::server
