// A small HTTP/1.1 server. Everything that a client sends is bounded in size and in time; the libraries
// underneath stay out of this header.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/http/http_message.h"

// OpenSSL's, which stays out of this header.
struct ssl_ctx_st;

namespace saccade::server {

// Called from several threads at once, each its connection's own: it may block. An exception becomes a 500
// that does not tell its text.
using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;

struct HttpRoute {
  // "GET" (which answers HEAD too) or "POST".
  std::string method;
  // Begins with '/'; a segment {name} takes any text but an empty one. Where two routes take a path, the one
  // whose words stand further to the front answers.
  std::string path;
  HttpHandler handler;
};

// Called before a request's body is read, with the method and path of its route and its headers: what answers
// in place of the handler, if the client may not have that.
using HttpGuard = std::function<std::optional<HttpResponse>(absl::string_view method, absl::string_view route,
                                                            const HttpHeaders& headers)>;

struct HttpServerOptions {
  // The flag that sets `port`, for error messages.
  std::string port_flag = "--http-port";
  std::string host = "0.0.0.0";
  // 0 picks a free port.
  int port = 0;
  // A connection keeps a thread while it is open. One more takes the place of the one that is idle longest;
  // if none is, it is answered 503.
  int max_connections = 16;
  // Of a body, once it is decoded.
  size_t max_body_bytes = size_t{64} << 20;
  // Of all bodies that are in memory.
  size_t max_bodies_bytes = size_t{512} << 20;
  // Request line and headers together.
  size_t max_head_bytes = 16 << 10;
  // What connections that begin now speak TLS with; thread-safe. Without it they do not.
  std::function<std::shared_ptr<ssl_ctx_st>()> tls;
  // Until a client has agreed on TLS. Until then it counts as idle, and the next client may take its place.
  absl::Duration handshake_timeout = absl::Seconds(10);
  // Thread-safe. Without it every client may have everything.
  HttpGuard guard;
  // From a request's first byte to its last: a client that sends a byte now and then does not keep a thread.
  absl::Duration read_timeout = absl::Seconds(10);
  // From an answer's first byte to its last.
  absl::Duration write_timeout = absl::Seconds(10);
  // Both are longer for what is large: by the time that its bytes take at this rate.
  int64_t min_bytes_per_second = 256 << 10;
  // How long an open connection may stay silent between requests.
  absl::Duration idle_timeout = absl::Seconds(30);
  // Requests on one connection before it is closed, so that load spreads again behind a balancer.
  int max_requests_per_connection = 1000;
};

// Thread-safe.
class HttpServer {
 public:
  // Listens when it returns. INVALID_ARGUMENT for a host or a route that cannot be served, ALREADY_EXISTS if
  // the port is in use, PERMISSION_DENIED if it may not be opened; the message names the flag.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const HttpServerOptions& options,
                                                           std::vector<HttpRoute> routes);

  // Stops.
  ~HttpServer();

  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // The port it listens on.
  int port() const;

  // Takes no more connections, lets running handlers return and answer, closes every connection. Blocks until
  // that is done, so a handler must not call it. A second call does nothing more.
  void Stop();

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace saccade::server
