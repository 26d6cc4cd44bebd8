// One request to an HttpService, from its head to the end of its response.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/core/byte_ledger.h"
#include "server/core/cancellation.h"
#include "server/http/caller.h"
#include "server/http/exchange.h"
#include "server/http/http_reply.h"
#include "server/http/http_service.h"
#include "server/http/request_body.h"
#include "server/http/routes.h"
#include "server/net/timer.h"

namespace saccade::server {

struct HttpServiceCore {
  HttpService::Options options;
  Routes routes;

  void Count(Refusal reason) const {
    if (options.refusals != nullptr) options.refusals->Count(reason);
  }
};

// Loop's thread only.
class HttpCall final : public ExchangeReceiver, public Responder {
 public:
  HttpCall(std::shared_ptr<const HttpServiceCore> core, Exchange* exchange);

  // Responds if the request is refused before its body is read.
  void Begin();

  void OnBody(absl::string_view bytes) override;
  void OnBodyEnd() override;
  void OnWritten() override {}
  bool OnShutdown() override { return responded_; }
  void OnOver(bool answered) override;
  void Respond(HttpResponse response) override;

 private:
  void Refuse(RequestBody::Refused refused);
  void Send(HttpResponse response);
  // For an exception. Resets the exchange if there is no memory for a response, or one has begun.
  void SendFailure();
  // Charges the body that is to be sent, unless it is small or the handler has charged it.
  absl::StatusOr<ByteCharge> ChargeAnswer(const HttpResponse& response) const;

  // The response for a request that may not be made, or whose body is not read. Otherwise sets match_.
  std::optional<HttpResponse> CheckHead();
  std::optional<HttpResponse> CheckBody();
  // The response for a request whose client waits with the body, if its head decides.
  std::optional<HttpResponse> CheckBeforeContinue();
  void BeginBody();
  void ExpectBody();
  // The request without its body.
  std::shared_ptr<HttpRequest> MakeRequest(std::map<std::string, std::string> path_values) const;
  void Handle();
  // Ends the request if its client does not read the response in time.
  void ExpectReading();

  const std::shared_ptr<const HttpServiceCore> core_;
  Exchange* const exchange_;
  const std::shared_ptr<ReplyPath> path_;
  const std::shared_ptr<Cancellation> cancellation_ = std::make_shared<Cancellation>();
  Caller caller_;
  // For the head.
  ByteCharge memory_;
  // As RequestCharge's, for the response.
  absl::Duration max_client_wait_ = absl::InfiniteDuration();
  Routes::Match match_;
  ContentCoding coding_ = ContentCoding::kIdentity;
  std::shared_ptr<RequestBody> body_;
  uint64_t received_ = 0;
  absl::Time begin_;
  // Nothing else may respond.
  bool responded_ = false;
  bool head_sent_ = false;
  // Set while a body is expected.
  std::optional<Timer> body_timer_;
  // Set from the response on, if max_client_wait_ is finite.
  std::optional<Timer> unread_timer_;
};

}  // namespace saccade::server
