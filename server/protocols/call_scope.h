// What every transport does for every call: who called and when, the call's record, the log line of a
// failure, and its capture.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/attestation/attester.h"
#include "server/capture/capture.h"
#include "server/core/byte_pieces.h"
#include "server/core/call_head.h"
#include "server/core/served_by.h"
#include "server/engine/pipeline.h"
#include "server/grpc/call.h"
#include "server/http/http_message.h"
#include "server/tracing/call_record.h"
#include "server/tracing/call_watch.h"

namespace saccade::server {

// All may be null, and must outlive the call.
struct CallObservers {
  const CallWatch* watch = nullptr;
  Capture* capture = nullptr;
  const Attester* attester = nullptr;
};

inline CallObservers ObserversOf(const Pipeline& pipeline) {
  const Pipeline::Deps& deps = pipeline.deps();
  return {.watch = deps.watch, .capture = deps.capture, .attester = deps.attester};
}

// Created when a call, or a message of a stream, has arrived. May be copied; the copies belong to the same
// call. Thread-safe after construction.
class CallScope {
 public:
  // For a gRPC call. `start` must outlive the scope. `method` is "package.Service/Method" and must outlive
  // the call's record.
  CallScope(const CallObservers& observers, const CallStart& start, std::string_view method)
      : CallScope(observers, start, method, start.arrival) {}
  // For one request of a stream, which arrived after its stream.
  CallScope(const CallObservers& observers, const CallStart& start, std::string_view method,
            absl::Time arrival);
  // For an HTTP request to `route`. `request` must outlive the scope, and `route` the call's record.
  CallScope(const CallObservers& observers, const HttpRequest& request, std::string_view route);

  absl::Time arrival() const { return arrival_; }
  // absl::InfiniteFuture() if the client set none.
  absl::Time deadline() const { return deadline_; }
  // The key of the client for limits.
  const std::string& client() const { return *client_; }
  // Null if the call is neither sampled nor logged.
  const std::shared_ptr<CallRecord>& record() const { return record_; }

  // Null unless the model that computed the call signs its answers. Known when the call has been computed.
  const Attester* attester() const {
    const bool is_attested = attester_ != nullptr && served_->identity != nullptr &&
                             !served_->identity->attestation_key_sha256.empty();
    return is_attested ? attester_ : nullptr;
  }
  // Whether attester() may become that.
  bool may_attest() const { return attester_ != nullptr; }
  // REQUIRES: attester() is not null.
  const ServedBy& served() const { return *served_; }

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
  // The same for a gRPC call that is one message and one answer, empty if it failed, which are captured if
  // they are chosen.
  void End(const absl::Status& status, const BytePieces& request, const BytePieces& answer,
           absl::string_view model, absl::string_view id) const;
  // The same for HTTP; `status` is what `response` was made of. Also captured if chosen.
  void End(const absl::Status& status, const HttpResponse& response, absl::string_view model = "",
           absl::string_view id = "") const;

 private:
  void End(CallOutcome outcome, absl::string_view model, absl::string_view id) const;

  struct Bodies {
    absl::Span<const BytePieces> request;
    absl::Span<const BytePieces> answer;
  };
  void CaptureCall(const CallOutcome& outcome, const Bodies& bodies, const HttpResponse* response,
                   absl::string_view model, absl::string_view id) const;

  std::string_view method_;
  // Null unless the call is captured if it is chosen.
  Capture* capture_ = nullptr;
  // Null if the daemon has no key.
  const Attester* attester_ = nullptr;
  // Null if the call is not made over HTTP.
  const HttpRequest* request_ = nullptr;
  // Null if neither of the two above needs it.
  std::shared_ptr<ServedBy> served_;
  const HttpHeaders* headers_;
  const std::string* client_;
  absl::Time arrival_;
  absl::Time deadline_;
  std::shared_ptr<CallRecord> record_;
};

}  // namespace saccade::server
