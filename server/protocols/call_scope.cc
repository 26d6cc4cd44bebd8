#include "server/protocols/call_scope.h"

#include <cstdint>
#include <utility>

#include "server/grpc/message_size.h"
#include "server/inference/parameters.h"
#include "server/protocols/call_headers.h"
#include "server/protocols/capture_headers.h"
#include "server/protocols/log_calls.h"

namespace saccade::server {
namespace {

// The record keeps no more of it.
constexpr size_t kKeptOfRequestId = 128;

std::shared_ptr<CallRecord> RecordOf(const CallWatch* watch, const HttpHeaders& headers,
                                     const CallOrigin& origin) {
  if (watch == nullptr) return nullptr;
  return watch->Begin(ValuesOf(headers, kTraceparent), ValuesOf(headers, kTracestate), [&]() -> CallOrigin {
    CallOrigin whole = origin;
    whole.request_id = FirstOf(ValuesOf(headers, kRequestId)).substr(0, kKeptOfRequestId);
    return whole;
  });
}

std::shared_ptr<ServedBy> ServedIfNeeded(const CallObservers& observers) {
  const bool is_needed = observers.attester != nullptr || CaptureIfEnabled(observers.capture) != nullptr;
  return is_needed ? std::make_shared<ServedBy>() : nullptr;
}

}  // namespace

CallScope::CallScope(const CallObservers& observers, const CallStart& start, std::string_view method,
                     absl::Time arrival)
    : method_(method),
      capture_(CaptureIfEnabled(observers.capture)),
      attester_(observers.attester),
      served_(ServedIfNeeded(observers)),
      headers_(&start.metadata),
      client_(&start.client),
      arrival_(arrival),
      deadline_(start.deadline) {
  if (observers.watch == nullptr) return;
  record_ = RecordOf(observers.watch, start.metadata,
                     {.method = method, .client = start.address, .arrival = arrival});
}

CallScope::CallScope(const CallObservers& observers, const HttpRequest& request, std::string_view route)
    : method_(route),
      capture_(CaptureIfEnabled(observers.capture)),
      attester_(observers.attester),
      request_(&request),
      served_(ServedIfNeeded(observers)),
      headers_(&request.headers),
      client_(&request.client),
      arrival_(request.arrival),
      deadline_(absl::InfiniteFuture()) {
  if (observers.watch == nullptr) return;
  record_ = RecordOf(
      observers.watch, request.headers,
      {.method = route, .http_method = request.method, .client = request.address, .arrival = arrival_});
  AddReceived(request.body.size());
}

void CallScope::AddReceived(size_t bytes) const {
  if (record_ != nullptr) record_->AddReceived(static_cast<int64_t>(bytes));
}

void CallScope::Describe(CallHead& head) const {
  head.client = *client_;
  head.arrival = arrival_;
  head.deadline = deadline_;
  head.served = served_;
  if (record_ == nullptr) return;
  record_->Describe(head);
  head.record = record_;
}

void CallScope::End(const absl::Status& status, size_t bytes, absl::string_view model,
                    absl::string_view id) const {
  End(CallOutcome{.status = status, .bytes = static_cast<int64_t>(bytes)}, model, id);
}

void CallScope::End(const absl::Status& status, const BytePieces& request, const BytePieces& answer,
                    absl::string_view model, absl::string_view id) const {
  CallOutcome outcome{.status = status, .bytes = static_cast<int64_t>(answer.size())};
  if (capture_ != nullptr) CaptureCall(outcome, {{&request, 1}, {&answer, 1}}, nullptr, model, id);
  End(std::move(outcome), model, id);
}

void CallScope::End(const absl::Status& status, const HttpResponse& response, absl::string_view model,
                    absl::string_view id) const {
  size_t bytes = response.body.size();
  for (const BytePieces& attached : response.attached) bytes += attached.size();
  CallOutcome outcome{.status = status, .bytes = static_cast<int64_t>(bytes), .http_status = response.status};
  if (capture_ != nullptr) {
    const BytePieces body({request_->body.data(), request_->body.size()});
    std::vector<BytePieces> answer = {BytePieces(response.body)};
    answer.insert(answer.end(), response.attached.begin(), response.attached.end());
    CaptureCall(outcome, {{&body, 1}, answer}, &response, model, id);
  }
  End(std::move(outcome), model, id);
}

void CallScope::CaptureCall(const CallOutcome& outcome, const Bodies& bodies, const HttpResponse* response,
                            absl::string_view model, absl::string_view id) const {
  if (!capture_->Wants(model, outcome.status)) return;
  CapturedCall call;
  if (request_ == nullptr) {
    call.transport = "grpc";
    call.target = method_;
  } else {
    call.transport = "http";
    call.target = CapturedTarget(*request_);
    call.headers = CapturedHeaders(request_->headers);
    call.answer_headers = CapturedHeaders(response->headers);
    call.answer_headers.emplace_back("content-type", response->content_type);
  }
  // The longer ones are those of wrong requests. They would become headers of events.
  if (model.size() <= kMaxModelName) call.model = std::string(model);
  if (id.size() <= kMaxInferId) call.id = std::string(id);
  call.arrival = arrival_;
  call.ended = capture_->Now();
  call.status = outcome.status;
  call.http_status = outcome.http_status;
  if (served_ != nullptr) call.served = *served_;
  capture_->Add(std::move(call), bodies.request, bodies.answer);
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
