// Whether a call is to be written down, asked when it comes; by whichever transport.
#pragma once

#include <grpcpp/server_context.h>

#include <cstddef>
#include <memory>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/http/http_message.h"
#include "server/tracing/call_record.h"
#include "server/tracing/call_watch.h"

namespace saccade::server {

// Null if nobody wants to know, which `watch` that is null says too. `method` is "package.Service/Method",
// and has to live on.
std::shared_ptr<CallRecord> RecordOf(const CallWatch* watch, const grpc::CallbackServerContext& context,
                                     std::string_view method, absl::Time arrival);

// The same of a request to `route`.
std::shared_ptr<CallRecord> RecordOf(const CallWatch* watch, const HttpRequest& request,
                                     std::string_view route, absl::Time arrival);

// Says how the call ended, if there is a record; `bytes` of the answer is asked only then.
void EndRecord(CallRecord* record, const absl::Status& status, absl::FunctionRef<size_t()> bytes);
void EndRecord(CallRecord* record, const absl::Status& status, const HttpResponse& response);

}  // namespace saccade::server
