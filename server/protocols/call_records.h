// Creates the record of a call when it arrives, for all transports.
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

// Null if the call is neither sampled nor logged, or if `watch` is null. `method` is "package.Service/Method"
// and must outlive the record.
std::shared_ptr<CallRecord> RecordOf(const CallWatch* watch, const grpc::CallbackServerContext& context,
                                     std::string_view method, absl::Time arrival);

// The same for an HTTP request to `route`.
std::shared_ptr<CallRecord> RecordOf(const CallWatch* watch, const HttpRequest& request,
                                     std::string_view route, absl::Time arrival);

// Ends the record, if there is one. `bytes` computes the size of the answer and is called only then.
void EndRecord(CallRecord* record, const absl::Status& status, absl::FunctionRef<size_t()> bytes);
void EndRecord(CallRecord* record, const absl::Status& status, const HttpResponse& response);

}  // namespace saccade::server
