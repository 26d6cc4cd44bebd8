// One HTTP request and its response, in whichever version of HTTP it came.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "server/core/byte_pieces.h"
#include "server/http/http_headers.h"
#include "server/net/loop.h"
#include "server/net/peer.h"
#include "server/net/refusal.h"

namespace saccade::server {

enum class HttpVersion { kHttp1, kHttp2 };

// The head of a request. Both versions' heads are well-formed when they get here: names are lower-case
// tokens, values have no line ends, there is one authority, and no two lengths.
struct RequestHead {
  HttpVersion version = HttpVersion::kHttp1;
  std::string method;
  // Without the query, as it was sent; begins with '/', or is "*".
  std::string path;
  // What follows '?', as it was sent.
  std::string query;
  // HTTP/2's :authority, or HTTP/1.1's Host; empty if the client sent none.
  std::string authority;
  HttpHeaders headers;
  std::optional<uint64_t> content_length;
  // False if the request ended with its head.
  bool has_body = false;
};

// Why an exchange is ended without a complete response.
enum class ExchangeError {
  kInternal,   // HTTP/2: INTERNAL_ERROR
  kRefused,    // HTTP/2: REFUSED_STREAM; the request was not processed and may be repeated elsewhere
  kCancelled,  // HTTP/2: CANCEL
  kTooSlow,    // HTTP/2: ENHANCE_YOUR_CALM
};

// Loop's thread only. Owned by the session. Lives until ExchangeReceiver::OnOver() returns.
class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual const RequestHead& head() const = 0;
  virtual const Peer& peer() const = 0;
  virtual Loop& loop() = 0;

  // Lets the client send up to `total` bytes of body, counted from the beginning of the body. A smaller value
  // than before has no effect. Every exchange starts with kFirstBodyBytes, so that small requests need no
  // second message; the receiver has to be ready for those at any time.
  virtual void AllowBody(uint64_t total) = 0;
  static constexpr uint64_t kFirstBodyBytes = 65535;

  // Sends the head of the response. Called once, before SendBody() and End(). Names must be lower case. The
  // session adds what its version needs (date is not sent, Content-Length is the caller's).
  virtual void SendHead(int status, HttpHeaders headers) = 0;
  // Queues bytes of the body. They go out as the client's window permits. Their owner is released once they
  // are written to the socket, or the exchange is over.
  virtual void SendBody(BytePieces bytes) = 0;
  // Completes the response. HTTP/1.1 sends the trailers only if the client accepts them and the body has no
  // announced length.
  virtual void End(HttpHeaders trailers) = 0;
  // Ends the exchange at once. What was queued and not written is dropped. OnOver() is called from the loop,
  // not from within this call. Over HTTP/1.1, closes the connection.
  virtual void Reset(ExchangeError error) = 0;

  // Bytes given to SendBody() that have not been written to the socket.
  virtual size_t unsent() const = 0;
};

// What an exchange's request and its progress are delivered to. Loop's thread only. No function may block.
class ExchangeReceiver {
 public:
  virtual ~ExchangeReceiver() = default;

  // Bytes of the body, valid during the call. Not called after End() or Reset().
  virtual void OnBody(absl::string_view bytes) = 0;
  // The request is complete.
  virtual void OnBodyEnd() = 0;
  // Bytes given to SendBody() were written to the socket: Exchange::unsent() has become smaller.
  virtual void OnWritten() = 0;
  // The server shuts down, and the request is not complete. Returns true if the receiver ends the exchange,
  // now or when it has answered what has come; false if nothing of the request was processed, so that it may
  // be refused. May be called again until the exchange is over. Ends nothing before it returns.
  virtual bool OnShutdown() { return false; }
  // The exchange is over: completely answered (`answered`: the last byte was written to the socket), or the
  // client has reset it, or the connection is lost, or Reset() was called. Last call.
  virtual void OnOver(bool answered) = 0;
};

// Receives the requests of all connections of a port. Called on several loops' threads at once.
class ExchangeHandler {
 public:
  virtual ~ExchangeHandler() = default;

  // A request has come; its head is complete. May already respond. Never null.
  virtual std::unique_ptr<ExchangeReceiver> Begin(Exchange* exchange) = 0;
};

}  // namespace saccade::server
