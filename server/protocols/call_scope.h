// What every transport does for every call: who called and when, the call's record, and the log line of a
// failure.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/core/call_head.h"
#include "server/grpc/call.h"
#include "server/http/http_message.h"
#include "server/tracing/call_record.h"
#include "server/tracing/call_watch.h"

namespace saccade::server {

// Created when a call, or a message of a stream, has arrived. May be copied; the copies belong to the same
// call. Thread-safe after construction.
class CallScope {
 public:
  // For a gRPC call. `start` must outlive the scope. `watch` may be null. `method` is
  // "package.Service/Method" and must outlive the call's record.
  CallScope(const CallWatch* watch, const CallStart& start, std::string_view method)
      : CallScope(watch, start, method, start.arrival) {}
  // For one request of a stream, which arrived after its stream.
  CallScope(const CallWatch* watch, const CallStart& start, std::string_view method, absl::Time arrival);
  // For an HTTP request to `route`. `request` must outlive the scope, and `route` the call's record.
  CallScope(const CallWatch* watch, const HttpRequest& request, std::string_view route, absl::Time arrival);

  absl::Time arrival() const { return arrival_; }
  // absl::InfiniteFuture() if the client set none.
  absl::Time deadline() const { return deadline_; }
  // The key of the client for limits.
  const std::string& client() const { return *client_; }
  // Null if the call is neither sampled nor logged.
  const std::shared_ptr<CallRecord>& record() const { return record_; }

  // Adds to the number of bytes received. HTTP's bodies are added by the constructor.
  void AddReceived(size_t bytes) const;

  // Sets client, arrival, deadline and record of `head`, and tells the record what `head` says. REQUIRES: the
  // other members that a message states are set.
  void Describe(CallHead& head) const;

  // Ends the record, and logs the call if it failed because of the daemon (LogFault). `bytes` is the size of
  // the answer. `model` and `id` name the request in the log. Call once, before the response is sent, which
  // may end the life of `start` or `request`.
  void End(const absl::Status& status, size_t bytes, absl::string_view model = "",
           absl::string_view id = "") const;
  // The same for HTTP; `status` is what `response` was made of.
  void End(const absl::Status& status, const HttpResponse& response, absl::string_view model = "",
           absl::string_view id = "") const;

 private:
  void End(CallOutcome outcome, absl::string_view model, absl::string_view id) const;

  std::string_view method_;
  const HttpHeaders* headers_;
  const std::string* client_;
  absl::Time arrival_;
  absl::Time deadline_;
  std::shared_ptr<CallRecord> record_;
};

}  // namespace saccade::server
