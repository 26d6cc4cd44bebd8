#include "server/protocols/call_records.h"

#include "server/protocols/call_headers.h"
#include "server/protocols/peer.h"

namespace saccade::server {

std::shared_ptr<CallRecord> RecordOf(const CallWatch* watch, const grpc::CallbackServerContext& context,
                                     std::string_view method, absl::Time arrival) {
  if (watch == nullptr) return nullptr;
  return watch->Begin(ValuesOf(context, kTraceparent), ValuesOf(context, kTracestate), [&]() -> CallOrigin {
    return {.method = method,
            .client = ClientOfPeer(context.peer()),
            .request_id = FirstOf(ValuesOf(context, kRequestId)),
            .arrival = arrival};
  });
}

std::shared_ptr<CallRecord> RecordOf(const CallWatch* watch, const HttpRequest& request,
                                     std::string_view route, absl::Time arrival) {
  if (watch == nullptr || request.headers == nullptr) return nullptr;
  const HttpHeaders& headers = *request.headers;
  auto record =
      watch->Begin(ValuesOf(headers, kTraceparent), ValuesOf(headers, kTracestate), [&]() -> CallOrigin {
        return {.method = route,
                .http_method = "POST",
                .client = ClientOfAddress(request.client->Address()),
                .request_id = FirstOf(ValuesOf(headers, kRequestId)),
                .arrival = arrival};
      });
  if (record != nullptr) record->AddReceived(static_cast<int64_t>(request.body.size()));
  return record;
}

void EndRecord(CallRecord* record, const absl::Status& status, absl::FunctionRef<size_t()> bytes) {
  if (record != nullptr) record->End({.status = status, .bytes = static_cast<int64_t>(bytes())});
}

void EndRecord(CallRecord* record, const absl::Status& status, const HttpResponse& response) {
  if (record == nullptr) return;
  size_t bytes = response.body.size();
  for (const BytePieces& attached : response.attached) bytes += attached.size();
  record->End({.status = status, .bytes = static_cast<int64_t>(bytes), .http_status = response.status});
}

}  // namespace saccade::server
