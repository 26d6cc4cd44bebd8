// One stream of an HTTP/2 connection: a request and its response.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "server/http/body_queue.h"
#include "server/http/exchange.h"
#include "server/http/http_limits.h"
#include "server/http/http_message.h"
#include "server/net/output.h"

namespace saccade::server {

class Http2Stream;

// What a stream asks of its session.
class Http2Streams {
 public:
  virtual ~Http2Streams() = default;
  virtual Loop& loop() = 0;
  virtual const Peer& peer() const = 0;
  // The stream has something to send.
  virtual void Changed(Http2Stream* stream) = 0;
  virtual void GrantWindow(int32_t id, uint64_t bytes) = 0;
  virtual void ResetStream(int32_t id, uint32_t code) = 0;
};

// Passive: the session moves bytes in and out. Loop's thread only.
class Http2Stream final : public Exchange {
 public:
  Http2Stream(Http2Streams* session, int32_t id) : session_(session), id_(id) {}

  int32_t id() const { return id_; }

  // The head of the response.
  struct PendingHead {
    int status = 0;
    HttpHeaders headers;
  };

  const RequestHead& head() const override { return head_; }
  const Peer& peer() const override { return session_->peer(); }
  Loop& loop() override { return session_->loop(); }
  void AllowBody(uint64_t total) override;
  void SendHead(int status, HttpHeaders headers) override;
  void SendBody(BytePieces bytes) override;
  void End(HttpHeaders trailers) override;
  void Reset(ExchangeError error) override;
  size_t unsent() const override { return body_.size() + in_output_; }

  // For the session.

  // Responds in place of the receiver.
  void Respond(const HttpResponse& response);
  void set_has_body(bool has_body) { head_.has_body = has_body; }
  // Adds a field of the request's head. Fields of a head that exceeds the limits are dropped.
  void AddField(std::string_view name, std::string_view value, const HttpLimits& limits);
  // As RFC 9113 counts them, with 32 bytes beside name and value.
  static size_t SizeOfField(std::string_view name, std::string_view value) {
    return name.size() + value.size() + 32;
  }
  bool head_too_large() const { return head_too_large_; }
  // Completes the head after its last field. Returns the error to respond with if it is no valid request.
  std::optional<HttpResponse> CompleteHead(const HttpLimits& limits);

  ExchangeReceiver* receiver() { return receiver_.get(); }
  void set_receiver(std::unique_ptr<ExchangeReceiver> receiver) { receiver_ = std::move(receiver); }
  // Frees the request's head, except has_body. REQUIRES: ended(); nothing else of head() is used afterwards.
  void ForgetHead();
  // Counts bytes of the body; false if there are more than the client was allowed to send.
  bool TakeFromWindow(size_t bytes) {
    received_ += bytes;
    return received_ <= allowed_;
  }
  // Bytes of the body that the client may still send.
  uint64_t window_left() const { return allowed_ > received_ ? allowed_ - received_ : 0; }
  // Delivers the request's end once.
  void EndRequest();
  bool request_ended() const { return request_ended_; }

  // The head to be submitted now, if there is one.
  std::optional<PendingHead> TakeHead() { return std::exchange(pending_head_, std::nullopt); }
  // True if nothing follows the head.
  bool ends_with_head() const { return ended_ && queued() == 0 && trailers_.empty(); }
  bool ended() const { return ended_; }
  // Bytes of the body that wait to be moved.
  size_t queued() const { return body_.size(); }
  const HttpHeaders& trailers() const { return trailers_; }
  // Moves the first `size` bytes of the body to `output`.
  void MoveBody(size_t size, Output& output);
  // `size` bytes that were moved to the output have been written.
  void Written(size_t size);
  // Called at the end of each interval in which the session checks for stalled responses. `is_held`: the
  // client's windows now hold a part of the response back. Returns true if they did at the beginning of the
  // interval too, and no byte was moved during it or `all` is true. Begins the next interval.
  bool HasStalled(bool is_held, bool all);

  // True while nghttp2 waits for ResumeBody(), because ReadBody() had no data.
  bool deferred = false;
  bool changed = false;
  // nghttp2 has closed the stream.
  bool closed = false;
  bool was_reset = false;
  // The frame for which nghttp2 resets the stream was counted when it was read.
  bool counted_reset = false;
  // The session expects frames that come too late.
  bool expects_late = false;

 private:
  Http2Streams* const session_;
  const int32_t id_;
  RequestHead head_;
  size_t head_bytes_ = 0;
  bool head_too_large_ = false;
  bool request_ended_ = false;
  std::unique_ptr<ExchangeReceiver> receiver_;
  uint64_t allowed_ = kFirstBodyBytes;
  uint64_t received_ = 0;

  std::optional<PendingHead> pending_head_;
  BodyQueue body_;
  // Bytes of the body in the connection's output.
  size_t in_output_ = 0;
  bool ended_ = false;
  HttpHeaders trailers_;
  // Whether the stream was held at the beginning of the current interval of HasStalled(), and whether bytes
  // were moved since.
  bool was_held_ = false;
  bool has_moved_ = false;
};

}  // namespace saccade::server
