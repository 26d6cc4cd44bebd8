// A small HTTP/1.1 server for health, metadata and metrics. Everything that a client sends is bounded in size
// and in time; the library underneath stays out of this header.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>
#include "absl/strings/string_view.h"

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace saccade::server {

// Valid during the handler's call alone.
struct HttpRequest {
  absl::string_view method;
  // Without the query.
  absl::string_view path;
  absl::string_view body;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
};

// {"error": message} with `status`; `message` may hold any bytes.
HttpResponse HttpError(int status, absl::string_view message);

// Called from several threads at once. An exception becomes a 500 that does not tell its text.
using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;

struct HttpRoute {
  // "GET" (which answers HEAD too) or "POST".
  std::string method;
  // Exact, beginning with '/'.
  std::string path;
  HttpHandler handler;
};

struct HttpServerOptions {
  // The flag that sets `port`, for error messages.
  std::string port_flag = "--http-port";
  std::string host = "0.0.0.0";
  // 0 picks a free port.
  int port = 0;
  // A connection keeps a thread while it is open. One more takes the place of the one that is idle longest;
  // if none is, it is answered 503.
  int max_connections = 16;
  // A request says its length beforehand (chunked bodies are answered 411), so this is checked before
  // reading.
  size_t max_body_bytes = size_t{64} << 20;
  // Request line and headers together.
  size_t max_head_bytes = 16 << 10;
  // From a request's first byte to its last: a client that sends a byte now and then does not keep a thread.
  absl::Duration read_timeout = absl::Seconds(10);
  // From an answer's first byte to its last.
  absl::Duration write_timeout = absl::Seconds(10);
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
