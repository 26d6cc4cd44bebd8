// Hands requests to gRPC or to the HTTP routes, as the daemon's dispatcher does, and checks what they
// receive.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "server/http/exchange.h"

namespace saccade::server::simulation {

// Every request gets the bytes of its body, then perhaps the body's end, and last, exactly once, its own end.
class CheckedDispatcher final : public ExchangeHandler {
 public:
  // `violate` is called with a description of each wrong event. The handlers must outlive this object, and
  // this object the exchanges.
  CheckedDispatcher(ExchangeHandler* grpc, ExchangeHandler* http, std::function<void(std::string)> violate)
      : grpc_(grpc), http_(http), violate_(std::move(violate)) {}

  std::unique_ptr<ExchangeReceiver> Begin(Exchange* exchange) override;

  // Requests that have begun, and those that have ended.
  int begun() const { return begun_; }
  int over() const { return over_; }

 private:
  class Receiver;

  ExchangeHandler* const grpc_;
  ExchangeHandler* const http_;
  const std::function<void(std::string)> violate_;
  int begun_ = 0;
  int over_ = 0;
};

}  // namespace saccade::server::simulation
