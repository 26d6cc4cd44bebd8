// The request in progress on an HTTP/1.1 connection, and its response.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/strings/string_view.h"
#include "server/http/exchange.h"
#include "server/http/http1_response.h"
#include "server/http/request_parser.h"
#include "server/net/session.h"

namespace saccade::server {

// What an exchange asks of its connection. Implemented by the session.
class Http1Connection {
 public:
  virtual ~Http1Connection() = default;

  virtual Transport& transport() = 0;
  // Whether the connection will take another request.
  virtual bool StaysOpen() const = 0;
  // Bytes that wait may be delivered now.
  virtual void OnPermission() = 0;
  // The connection ends: when the output is written, or at once.
  virtual void Close() = 0;
  virtual void Abort() = 0;
  // The response is written. Ends the exchange, but FinishLater() not from within the call.
  virtual void Finish() = 0;
  virtual void FinishLater() = 0;
};

class Http1Exchange final : public Exchange {
 public:
  // `connection` must outlive the exchange.
  Http1Exchange(Http1Connection* connection, std::unique_ptr<RequestParser> parser);

  // Hands the request to `handler`. REQUIRES: called once, before the functions below.
  void Begin(ExchangeHandler* handler);

  const RequestHead& head() const override { return parser_->head(); }
  const Peer& peer() const override { return connection_->transport().peer(); }
  Loop& loop() override { return connection_->transport().loop(); }
  void AllowBody(uint64_t total) override;
  void SendHead(int status, HttpHeaders headers) override;
  void SendBody(BytePieces bytes) override;
  void End(HttpHeaders trailers) override;
  void Reset(ExchangeError error) override;
  size_t unsent() const override { return unsent_; }

  // Delivers the body's next bytes as far as the receiver permits. Returns how many of `bytes` are done with,
  // or the response for bytes that are not the body's. REQUIRES: !body_complete().
  struct Taken {
    size_t bytes = 0;
    std::optional<HttpResponse> malformed = {};
  };
  Taken TakeBody(absl::string_view bytes);

  bool body_complete() const { return body_complete_; }
  // Whether bytes have come that AllowBody() does not permit yet.
  bool waits_for_permission() const { return waits_for_permission_; }
  // Bytes of the body that the receiver takes at once.
  uint64_t takes() const {
    const uint64_t permitted = allowed_ - std::min(allowed_, delivered_);
    if (body_complete_ || over_) return 0;
    return parser_->chunked() ? permitted : std::min(permitted, left_);
  }
  // Whether the client waits for a 100 before it sends the body. Cleared by the first byte of the body.
  bool expects_continue() const { return expects_continue_; }
  void SendContinue();
  bool has_response_head() const { return response_.has_head(); }
  // End() or Reset() was called, or Drop().
  bool over() const { return over_; }
  // The connection has responded itself. The receiver gets no more of the request.
  void Drop() { over_ = true; }
  void OnOver(bool answered) {
    // Null if the handler failed to begin.
    if (receiver_ != nullptr) receiver_->OnOver(answered && !reset_);
  }

 private:
  size_t Deliver(absl::string_view bytes);
  void CompleteBody();

  Http1Connection* const connection_;
  const std::unique_ptr<RequestParser> parser_;
  Http1Response response_;
  // Bytes that are left of a body whose length was announced.
  uint64_t left_;
  uint64_t allowed_ = kFirstBodyBytes;
  uint64_t delivered_ = 0;
  bool expects_continue_;
  // A request without a body is complete from the beginning.
  bool body_complete_;
  bool waits_for_permission_ = false;
  bool over_ = false;
  bool reset_ = false;
  size_t unsent_ = 0;
  // Destroyed first.
  std::unique_ptr<ExchangeReceiver> receiver_;
};

}  // namespace saccade::server
