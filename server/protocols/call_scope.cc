#include "server/protocols/call_scope.h"

#include <cstdint>
#include <utility>

#include "server/protocols/call_headers.h"
#include "server/protocols/log_calls.h"

namespace saccade::server {
namespace {

std::shared_ptr<CallRecord> RecordOf(const CallWatch* watch, const HttpHeaders& headers,
                                     const CallOrigin& origin) {
  if (watch == nullptr) return nullptr;
  return watch->Begin(ValuesOf(headers, kTraceparent), ValuesOf(headers, kTracestate), [&]() -> CallOrigin {
    CallOrigin whole = origin;
    whole.request_id = FirstOf(ValuesOf(headers, kRequestId));
    return whole;
  });
}

}  // namespace

CallScope::CallScope(const CallWatch* watch, const CallStart& start, std::string_view method,
                     absl::Time arrival)
    : method_(method),
      headers_(&start.metadata),
      client_(&start.client),
      arrival_(arrival),
      deadline_(start.deadline) {
  if (watch == nullptr) return;
  record_ = RecordOf(watch, start.metadata, {.method = method, .client = start.address, .arrival = arrival});
}

CallScope::CallScope(const CallWatch* watch, const HttpRequest& request, std::string_view route,
                     absl::Time arrival)
    : method_(route),
      headers_(&request.headers),
      client_(&request.client),
      arrival_(arrival),
      deadline_(absl::InfiniteFuture()) {
  if (watch == nullptr) return;
  record_ = RecordOf(
      watch, request.headers,
      {.method = route, .http_method = request.method, .client = request.address, .arrival = arrival});
  AddReceived(request.body.size());
}

void CallScope::AddReceived(size_t bytes) const {
  if (record_ != nullptr) record_->AddReceived(static_cast<int64_t>(bytes));
}

void CallScope::Describe(CallHead& head) const {
  head.client = *client_;
  head.arrival = arrival_;
  head.deadline = deadline_;
  if (record_ == nullptr) return;
  record_->Describe(head);
  head.record = record_;
}

void CallScope::End(const absl::Status& status, size_t bytes, absl::string_view model,
                    absl::string_view id) const {
  End(CallOutcome{.status = status, .bytes = static_cast<int64_t>(bytes)}, model, id);
}

void CallScope::End(const absl::Status& status, const HttpResponse& response, absl::string_view model,
                    absl::string_view id) const {
  size_t bytes = response.body.size();
  for (const BytePieces& attached : response.attached) bytes += attached.size();
  End({.status = status, .bytes = static_cast<int64_t>(bytes), .http_status = response.status}, model, id);
}

void CallScope::End(CallOutcome outcome, absl::string_view model, absl::string_view id) const {
  if (!outcome.status.ok()) {
    const absl::string_view method(method_.data(), method_.size());
    LogFault(outcome.status, {.method = method, .model = model, .id = id, .record = record_.get()},
             *headers_);
  }
  if (record_ != nullptr) record_->End(std::move(outcome));
}

}  // namespace saccade::server
